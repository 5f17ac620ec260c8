#include "diagnose/doctor/size_sightings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "diagnose/doctor/remedies.h"
#include "diagnose/lint/plan.h"
#include "diagnose/manifest/engine_settings.h"

namespace fathom {
namespace {

using Side = SizeSighting::Side;

// Dynamo's frontend, from this version on, whatever its own setting says.
constexpr unsigned kTakesSizeFromWorkers[] = {1, 5};

class Sightings {
 public:
  explicit Sightings(const CaseFile& seen) : seen_(seen) {}

  std::vector<SizeSighting> Gather() {
    for (const Program& program : seen_.deployment.programs) FromProgram(program);
    if (seen_.live.router) FromRouter(*seen_.live.router);
    if (seen_.live.dynamo) FromDynamo(*seen_.live.dynamo);
    for (const LookedAtWorker& worker : seen_.live.workers) FromWorker(worker);
    for (const ReadLog& log : seen_.logs) FromLog(log);
    std::vector<SizeSighting> routers_first;
    for (const Side side : {Side::kRouter, Side::kEngine}) {
      std::ranges::copy_if(found_, std::back_inserter(routers_first),
                           [&](const SizeSighting& sighting) { return sighting.side == side; });
    }
    return routers_first;
  }

 private:
  void FromProgram(const Program& program) {
    if (program.role == ProgramRole::kEngine) {
      const EngineSettings settings = EngineSettingsOf(program);
      Add(Side::kEngine, program, settings.block_size);
    } else if (program.role != ProgramRole::kOther) {
      const RouterSettings settings = RouterSettingsOf(program);
      Add(Side::kRouter, program, settings.block_size);
    }
  }

  void Add(Side side, const Program& program, const Setting<uint32_t>& size) {
    if (!size.value) return;
    SizeSighting sighting{.side = side, .size = *size.value, .who = program.name};
    sighting.how = size.written ? size.written->name : "its default";
    sighting.where = ToText(size.written ? size.written->place : program.place);
    sighting.group = program.graph;
    sighting.engine = program.engine;
    sighting.fathom = program.role == ProgramRole::kFathom;
    sighting.harmless = program.role == ProgramRole::kDynamoFrontend &&
                        AtLeast(program.version, kTakesSizeFromWorkers);
    found_.push_back(std::move(sighting));
  }

  void FromRouter(const RouterLook& router) {
    for (const RoutedWorker& worker : router.workers) {
      if (worker.block_size == 0) continue;
      const bool configured = worker.block_size_source == "configured";
      found_.push_back({.side = configured ? Side::kRouter : Side::kEngine,
                        .size = worker.block_size,
                        .who = configured ? router.url : worker.url,
                        .how = fmt::format("source: {}", worker.block_size_source),
                        .where = fmt::format("GET {}/health", router.url),
                        .group = worker.models.empty() ? "" : worker.models.front(),
                        .live = true,
                        .fathom = true});
    }
    for (const SizeMismatch& mismatch : router.counters.mismatches) {
      found_.push_back({.side = Side::kRouter,
                        .size = mismatch.configured,
                        .who = router.url,
                        .how = "configured",
                        .where = "kv_router_block_size_mismatch_total",
                        .group = {},
                        .live = true,
                        .fathom = true});
    }
  }

  void FromDynamo(const DynamoLook& dynamo) {
    for (const DynamoModel& model : dynamo.models) {
      if (!model.block_size || *model.block_size < 1) continue;
      found_.push_back({.side = Side::kRouter,
                        .size = static_cast<uint32_t>(*model.block_size),
                        .who = dynamo.url,
                        .how = "dynamo_frontend_model_kv_cache_block_size",
                        .where = fmt::format("GET {}/metrics", dynamo.url),
                        .group = model.name,
                        .live = true});
    }
  }

  void FromWorker(const LookedAtWorker& worker) {
    const EngineReport& report = worker.look.report;
    const std::string group = worker.look.models.empty() ? "" : worker.look.models.front().id;
    if (const uint32_t size = report.event_block_size(); size > 0) {
      found_.push_back({.side = Side::kEngine,
                        .size = size,
                        .who = worker.look.url,
                        .how = "its own report",
                        .where = fmt::format("pages of {}", worker.look.url),
                        .group = group,
                        .engine = report.engine,
                        .live = true});
    }
    for (const StreamLook& stream : worker.streams) {
      for (const uint32_t size : stream.block_sizes) {
        found_.push_back({.side = Side::kEngine,
                          .size = size,
                          .who = worker.look.url,
                          .how = "its events",
                          .where = stream.source.endpoint,
                          .group = group,
                          .engine = report.engine,
                          .live = true});
      }
    }
  }

  void FromLog(const ReadLog& log) {
    for (const auto& [model, size] : log.facts.agreed_sizes) {
      found_.push_back({.side = Side::kEngine,
                        .size = size,
                        .who = "workers of " + model,
                        .how = "their reports, from Fathom's log",
                        .where = log.name,
                        .group = model,
                        .live = true});
    }
    const auto& blocks = log.facts.engines.tokens_per_block;
    if (blocks.low > 0) {
      found_.push_back({.side = Side::kEngine,
                        .size = static_cast<uint32_t>(blocks.low),
                        .who = "TensorRT-LLM",
                        .how = "its startup log lines",
                        .where = log.name,
                        .group = {},
                        .engine = EngineKind::kTrtllm,
                        .live = true});
    }
  }

  const CaseFile& seen_;
  std::vector<SizeSighting> found_;
};

bool MayMeet(const SizeSighting& a, const SizeSighting& b) {
  // A file names a graph, a running server a model: only names of one kind can tell them apart.
  return a.group.empty() || b.group.empty() || a.live != b.live || a.group == b.group;
}

std::string Sentence(const SizeSighting& s) {
  return fmt::format("{} {}: {} tokens per block, from {} ({})",
                     s.side == Side::kRouter ? "router" : "engine", s.who, s.size, s.how, s.where);
}

Finding Mismatch(const SizeSighting& router, const SizeSighting& engine) {
  Finding finding =
      MakeFinding(FindingId::kBlockSizeMismatch, engine.who,
                  fmt::format("The router expects a block size of {} tokens, the engine has {}",
                              router.size, engine.size));
  finding.why =
      "Blocks of different sizes have different keys: no block that the engine caches is ever "
      "found, while every request succeeds";
  finding.evidence = {Sentence(router), Sentence(engine)};
  finding.gain = 1;
  finding.gain_basis = "no block that such a worker caches can be found";
  finding.fixes = RemediesFor(FindingId::kBlockSizeMismatch,
                              {.engine = engine.engine,
                               .router = router.fathom ? RouterKind::kFathom : RouterKind::kDynamo,
                               .engine_block_size = engine.size,
                               .router_block_size = router.size});
  return finding;
}

Finding Conflict(const SizeSighting& one, const SizeSighting& other) {
  Finding finding =
      MakeFinding(FindingId::kBlockSizeConflict, other.who,
                  fmt::format("Engines of one model have block sizes of {} and {} tokens", one.size,
                              other.size));
  finding.why =
      "One router cannot look up both sizes with one key; a router that does not report this finds "
      "only part of the fleet's blocks";
  finding.evidence = {Sentence(one), Sentence(other)};
  finding.gain = 0.5;
  finding.fixes = RemediesFor(FindingId::kBlockSizeConflict, {.engine = other.engine});
  return finding;
}

}  // namespace

std::vector<SizeSighting> SightingsOf(const CaseFile& seen) { return Sightings(seen).Gather(); }

void DiagnoseSizes(const std::vector<SizeSighting>& sightings, FindingBook& book) {
  std::set<std::pair<std::string, std::string>> said;
  for (size_t i = 0; i < sightings.size(); ++i) {
    for (size_t j = i + 1; j < sightings.size(); ++j) {
      const SizeSighting& one = sightings[i];
      const SizeSighting& other = sightings[j];
      const bool files_alone = !one.live && !other.live;
      if (other.side == Side::kRouter || one.size == other.size || one.harmless || files_alone ||
          !MayMeet(one, other) || !said.emplace(one.who, other.who).second) {
        continue;
      }
      book.Add(one.side == Side::kRouter ? Mismatch(one, other) : Conflict(one, other));
    }
  }
}

}  // namespace fathom
