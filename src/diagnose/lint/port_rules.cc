// port-collision: does every socket get its port?
//
// Each data-parallel rank has an event socket and a replay socket of its own, on the port that is
// written plus its number.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "diagnose/lint/endpoint.h"
#include "diagnose/lint/events_config.h"
#include "diagnose/lint/remedy.h"
#include "diagnose/lint/rules.h"
#include "diagnose/manifest/setting_lookup.h"

namespace fathom {
namespace {

enum class Use : uint8_t { kHttp, kEvents, kReplay };

std::string_view Name(Use use) {
  switch (use) {
    case Use::kHttp:
      return "HTTP";
    case Use::kEvents:
      return "KV events";
    default:
      return "replay";
  }
}

struct PortRange {
  Use use;
  uint32_t first;
  uint32_t count;
  const PlannedEngine* engine;
  FilePlace place;

  uint32_t last() const { return first + count - 1; }
};

// The ranks of one process, which are those on its node.
struct Ranks {
  uint32_t first = 0;
  uint32_t count = 1;
};

// Nothing where it is written in a way that cannot be known here.
std::optional<Ranks> RanksOf(const PlannedEngine& engine) {
  const Program& program = *engine.program;
  const uint32_t all = std::max(1u, engine.settings.data_parallel);
  if (program.engine == EngineKind::kSglang) {
    const auto nodes = Narrowed<uint32_t>(CountOf(program, {"--nnodes", "nnodes"}, 1)).value;
    if (!nodes || *nodes == 0) return std::nullopt;
    return Ranks{0, std::max(1u, all / *nodes)};
  }
  const Setting<uint64_t> only =
      CountOf(program, {"--data-parallel-rank", "-dpn", "data-parallel-rank"});
  const Setting<uint64_t> first =
      CountOf(program, {"--data-parallel-start-rank", "-dpr", "data-parallel-start-rank"}, 0);
  const Setting<uint64_t> here =
      CountOf(program, {"--data-parallel-size-local", "-dpl", "data-parallel-size-local"}, all);
  const Setting<uint64_t>& start = only.written ? only : first;
  constexpr uint64_t kMost = 10'000;
  if (!start.value || !here.value || *start.value > kMost || *here.value > kMost) {
    return std::nullopt;
  }
  const auto count = only.written ? 1u : std::max(1u, static_cast<uint32_t>(*here.value));
  return Ranks{static_cast<uint32_t>(*start.value), count};
}

// A publisher that connects to another's address takes no port.
bool Listens(const PlannedEngine& engine, const PublisherEndpoint& endpoint) {
  return endpoint.binds() || endpoint.any_address() ||
         engine.program->engine == EngineKind::kTrtllm;
}

void AddEndpoint(Use use, const Setting<std::string>& setting, const PlannedEngine& engine,
                 std::vector<PortRange>& ranges) {
  const auto endpoint = setting.value ? PublisherEndpoint::Parse(*setting.value) : std::nullopt;
  if (!endpoint || endpoint->transport != "tcp" || !endpoint->port || *endpoint->port == 0) return;
  const auto ranks = RanksOf(engine);
  if (!ranks || !Listens(engine, *endpoint)) return;
  ranges.push_back({use, *endpoint->port + ranks->first, ranks->count, &engine,
                    PlaceOf(setting, *engine.program)});
}

std::vector<PortRange> PortsOf(const PlannedEngine& engine) {
  std::vector<PortRange> ranges;
  const EngineSettings& settings = engine.settings;
  if (settings.port.value && *settings.port.value != 0) {
    ranges.push_back(
        {Use::kHttp, *settings.port.value, 1, &engine, PlaceOf(settings.port, *engine.program)});
  }
  if (settings.publisher.enabled.value == true) {
    AddEndpoint(Use::kEvents, settings.publisher.endpoint, engine, ranges);
    AddEndpoint(Use::kReplay, settings.publisher.replay_endpoint, engine, ranges);
  }
  return ranges;
}

std::string Describe(const PortRange& range) {
  const std::string ports = range.count == 1 ? fmt::format("port {}", range.first)
                                             : fmt::format("ports {} to {} ({} ranks)", range.first,
                                                           range.last(), range.count);
  return fmt::format("{}: {} on {}", Called(*range.engine->program), Name(range.use), ports);
}

// Where the second may go: behind everything that is taken.
uint32_t FreePort(const std::vector<PortRange>& ranges) {
  uint32_t free = 0;
  for (const PortRange& range : ranges) {
    if (range.use != Use::kHttp) free = std::max(free, range.last() + 1);
  }
  return free;
}

Remedy Move(const Plan& plan, const PortRange& range, uint32_t port) {
  const std::string endpoint = fmt::format("tcp://*:{}", port);
  Remedy remedy;
  remedy.fix.cost = "The engine restarts.";
  remedy.fix.verify = "The engine starts, and fathom listen shows events of every rank.";
  if (range.use == Use::kHttp) {
    remedy.fix.what = fmt::format("Give {} another --port.", Called(*range.engine->program));
    remedy.fix.setting = fmt::format("--port {}", range.first + 1);
    return remedy;
  }
  const std::string_view key = range.use == Use::kReplay ? "replay_endpoint" : "endpoint";
  remedy.fix.what = fmt::format("Move the {} socket of {}: \"{}\": \"{}\".", Name(range.use),
                                Called(*range.engine->program), key, endpoint);
  remedy.fix.setting = fmt::format("\"{}\": \"{}\"", key, endpoint);
  remedy.edits =
      ChangePublisher(plan, range.engine->settings.publisher, {{std::string(key), Json(endpoint)}});
  return remedy;
}

std::string_view PodOf(const Program& program) {
  return std::string_view(program.name).substr(0, program.name.find(", container "));
}

// Pods of their own, which nothing keeps together.
bool MayBeApart(const PortRange& a, const PortRange& b) {
  const Program& x = *a.engine->program;
  const Program& y = *b.engine->program;
  return x.nodes && y.nodes && (PodOf(x) != PodOf(y) || x.place.file != y.place.file);
}

bool AreApart(const PortRange& a, const PortRange& b) {
  return MayBeApart(a, b) && a.engine->program->nodes != b.engine->program->nodes;
}

void AddCollision(const Plan& plan, const PortRange& a, const PortRange& b, uint32_t free,
                  Safety safety, LintFindings& findings) {
  const Program& program = *b.engine->program;
  const bool own = a.engine == b.engine;
  Finding finding =
      MakeFinding(FindingId::kPortCollision, program.name,
                  own ? fmt::format("{} of {} use port {} for both {} and {}",
                                    b.count > 1 ? "two ranks" : "two sockets", Called(program),
                                    std::max(a.first, b.first), Name(a.use), Name(b.use))
                      : fmt::format("{} and {} use the same port {}", Called(*a.engine->program),
                                    Called(program), std::max(a.first, b.first)));
  finding.why =
      "The second process to bind it does not start. Rank r uses the configured port plus r, for "
      "events and for replay.";
  finding.place = b.place;
  if (MayBeApart(a, b)) {
    finding.severity = Severity::kWarning;
    finding.why += " Pods on the host's network conflict only on the same node.";
  }
  finding.evidence = {Describe(a), Describe(b)};
  findings.push_back(WithRemedies(plan, std::move(finding), {Move(plan, b, free)}, safety));
}

// Each range against the first that it meets; of each engine by itself, or between engines.
void CheckTogether(const Plan& plan, std::vector<PortRange> ranges, bool own, Safety safety,
                   LintFindings& findings) {
  const uint32_t free = FreePort(ranges);
  std::ranges::sort(ranges, {}, [](const PortRange& range) {
    return std::tie(range.first, range.place, range.use);
  });
  std::vector<const PortRange*> open;  // that reach as far as the one which is looked at
  for (const PortRange& b : ranges) {
    std::erase_if(open, [&](const PortRange* a) { return a->last() < b.first; });
    const auto met = std::ranges::find_if(open, [&](const PortRange* a) {
      return (a->engine == b.engine) == own && !AreApart(*a, b);
    });
    if (met != open.end()) {
      const PortRange& a = **met;
      // An HTTP port is known to others; the sockets for events are easier to move.
      const bool swap = a.use != b.use &&
                        (b.use == Use::kHttp || (a.use == Use::kReplay && b.use == Use::kEvents));
      AddCollision(plan, swap ? b : a, swap ? a : b, free, safety, findings);
    }
    open.push_back(&b);
  }
}

// Whether the command's line goes on in the background, so that the next command runs beside it.
bool RunsInBackground(const SourceFile& file, uint32_t line) {
  const std::string_view text = file.text;
  size_t begin = 0;
  for (uint32_t i = 1; i < line && begin != std::string_view::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != std::string_view::npos) ++begin;
  }
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view words = Trim(text.substr(begin, end - begin));
    if (!words.ends_with('\\')) return words.ends_with('&') && !words.ends_with("&&");
    begin = end + 1;
  }
  return false;
}

// The networks that an engine is in beside others, by names of our own.
std::vector<std::string> NetworksOf(const Plan& plan, const Program& program) {
  std::vector<std::string> networks;
  if (program.host_network) networks.push_back("host " + program.graph);
  if (program.name.contains(", container ") && !program.host_network) {
    networks.push_back(fmt::format("pod {} {}", program.place.file, PodOf(program)));
  }
  const SourceFile* file = plan.File(program.place.file);
  if (file != nullptr && program.image.empty() && !file->name.ends_with(".md") &&
      program.flag_foothold.form == Foothold::Form::kText &&
      RunsInBackground(*file, program.place.line)) {
    networks.push_back("script " + program.place.file);
  }
  return networks;
}

}  // namespace

void CheckPorts(const Plan& plan, LintFindings& findings) {
  std::map<std::string, std::vector<PortRange>> networks;
  for (const PlannedEngine& engine : plan.engines()) {
    const std::vector<PortRange> ranges = PortsOf(engine);
    CheckTogether(plan, ranges, true, Safety::kSafe, findings);
    for (const std::string& network : NetworksOf(plan, *engine.program)) {
      auto& all = networks[network];
      all.insert(all.end(), ranges.begin(), ranges.end());
    }
  }
  for (auto& [name, ranges] : networks) {
    CheckTogether(plan, std::move(ranges), false, Safety::kDecide, findings);
  }
}

}  // namespace fathom
