#include "diagnose/doctor/size_sightings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "diagnose/doctor/remedies.h"
#include "diagnose/lint/plan.h"
#include "diagnose/manifest/engine_settings.h"
#include "diagnose/manifest/identity.h"

namespace fathom {
namespace {

using Side = SizeSighting::Side;

// A running router that has admitted workers of one model with different sizes, and doubts none of
// them for it: it was started with --block-size-conflict=mixed.
bool ServesMixed(const RouterLook& router) {
  std::map<std::string_view, uint32_t> sizes;  // by model
  bool mixed = false;
  for (const RoutedWorker& worker : router.workers) {
    const bool doubted = std::ranges::any_of(
        worker.ranks, [](const RoutedRank& rank) { return rank.cause == "block_size_mismatch"; });
    if (worker.state != "ready" || worker.block_size == 0) continue;
    if (doubted || worker.block_size_source == "configured") return false;
    for (const std::string& model : worker.models) {
      const uint32_t known = sizes.try_emplace(model, worker.block_size).first->second;
      mixed = mixed || known != worker.block_size;
    }
  }
  return mixed;
}

// As the router's page has it: "events", "report", "configured".
std::string HowKnown(const std::string& source) {
  if (source == "events") return "its KV events";
  return source == "report" ? "its own report" : "its setting";
}

// Counted against a setting of the router. The others are counted against the size that the fleet
// has agreed on: of a worker that is refused for its size, or of a rank among others of its model.
bool IsAgainstASetting(const RouterLook& router, const SizeMismatch& mismatch) {
  if (mismatch.events <= 0) return false;
  const auto worker = std::ranges::find_if(router.workers, [&](const RoutedWorker& known) {
    return std::to_string(known.id) == mismatch.worker;
  });
  if (worker == router.workers.end()) return true;
  if (worker->cause == "block_size_conflict") return false;
  return std::ranges::none_of(
      worker->ranks, [](const RoutedRank& rank) { return rank.fix.contains("on this worker"); });
}

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
    for (SizeSighting& sighting : found_)
      sighting.mixed = sighting.side == Side::kEngine && Mixed();
    std::vector<SizeSighting> routers_first;
    for (const Side side : {Side::kRouter, Side::kEngine}) {
      std::ranges::copy_if(found_, std::back_inserter(routers_first),
                           [&](const SizeSighting& sighting) { return sighting.side == side; });
    }
    return routers_first;
  }

 private:
  bool Mixed() const {
    return (seen_.live.router && ServesMixed(*seen_.live.router)) ||
           std::ranges::any_of(seen_.deployment.programs, AllowsMixedSizes);
  }

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
                        .how = HowKnown(worker.block_size_source),
                        .where = fmt::format("GET {}/health", router.url),
                        .group = worker.models.empty() ? "" : worker.models.front(),
                        .engine = EngineNamed(worker.engine),
                        .live = true,
                        .fathom = true});
    }
    for (const SizeMismatch& mismatch : router.counters.mismatches) {
      if (!IsAgainstASetting(router, mismatch)) continue;
      found_.push_back({.side = Side::kRouter,
                        .size = mismatch.configured,
                        .who = router.url,
                        .how = "its setting",
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

std::string SightingSentence(const SizeSighting& s) {
  return fmt::format("{} {}: {} tokens per block, from {} ({})",
                     s.side == Side::kRouter ? "router" : "engine", s.who, s.size, s.how, s.where);
}

Finding Mismatch(const SizeSighting& router, const SizeSighting& engine, bool divided) {
  Finding finding =
      MakeFinding(FindingId::kBlockSizeMismatch, engine.who,
                  fmt::format("The router expects a block size of {} tokens, the engine has {}",
                              router.size, engine.size));
  finding.why =
      "Blocks of different sizes have different keys: no block that the engine caches is ever "
      "found, while every request succeeds";
  finding.evidence = {SightingSentence(router), SightingSentence(engine)};
  finding.gain = 1;
  finding.gain_basis = "no block that such a worker caches can be found";
  finding.fixes = RemediesFor(FindingId::kBlockSizeMismatch,
                              {.engine = engine.engine,
                               .router = router.fathom ? RouterKind::kFathom : RouterKind::kDynamo,
                               .engine_block_size = engine.size,
                               .router_block_size = router.size,
                               .divided = divided});
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
  finding.evidence = {SightingSentence(one), SightingSentence(other)};
  finding.gain = 0.5;
  finding.fixes = RemediesFor(FindingId::kBlockSizeConflict, {.engine = other.engine});
  return finding;
}

}  // namespace

std::vector<SizeSighting> SightingsOf(const CaseFile& seen) { return Sightings(seen).Gather(); }

namespace {

// Whether other engines that the router serves have another size than this one.
bool Divided(const std::vector<SizeSighting>& sightings, const SizeSighting& engine) {
  return std::ranges::any_of(sightings, [&](const SizeSighting& other) {
    return other.side == Side::kEngine && other.who != engine.who && other.size != engine.size &&
           MayMeet(other, engine);
  });
}

}  // namespace

void DiagnoseSizes(const std::vector<SizeSighting>& sightings, FindingBook& book) {
  std::set<std::pair<std::string, std::string>> said;
  for (size_t i = 0; i < sightings.size(); ++i) {
    for (size_t j = i + 1; j < sightings.size(); ++j) {
      const SizeSighting& one = sightings[i];
      const SizeSighting& other = sightings[j];
      const bool files_alone = !one.live && !other.live;
      if (other.side == Side::kRouter || one.size == other.size || one.harmless || files_alone ||
          (one.mixed && other.mixed) || !MayMeet(one, other) ||
          !said.insert(std::minmax(one.who, other.who)).second) {
        continue;
      }
      book.Add(one.side == Side::kRouter ? Mismatch(one, other, Divided(sightings, other))
                                         : Conflict(one, other));
    }
  }
}

}  // namespace fathom
