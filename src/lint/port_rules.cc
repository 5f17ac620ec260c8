// port-collision: does every socket get its port?
//
// Each data-parallel rank has an event socket and a replay socket of its own, on the port that is
// written plus its number.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "lint/endpoint.h"
#include "lint/events_config.h"
#include "lint/remedy.h"
#include "lint/rules.h"

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
  Place place;

  uint32_t last() const { return first + count - 1; }
};

void AddEndpoint(Use use, const Setting<std::string>& setting, const PlannedEngine& engine,
                 std::vector<PortRange>& ranges) {
  const auto endpoint = setting.value ? Endpoint::Parse(*setting.value) : std::nullopt;
  if (!endpoint || endpoint->transport != "tcp" || !endpoint->port || *endpoint->port == 0) return;
  ranges.push_back({use, *endpoint->port, std::max(1u, engine.settings.data_parallel), &engine,
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

void AddCollision(const Plan& plan, const PortRange& a, const PortRange& b, uint32_t free,
                  Safety safety, LintFindings& findings) {
  const Program& program = *b.engine->program;
  const bool own = a.engine == b.engine;
  Finding finding =
      MakeFinding(FindingId::kPortCollision, program.name,
                  own ? fmt::format("{} of {} want port {} for both {} and {}",
                                    b.count > 1 ? "two ranks" : "two sockets", Called(program),
                                    std::max(a.first, b.first), Name(a.use), Name(b.use))
                      : fmt::format("{} and {} want the same port {}", Called(*a.engine->program),
                                    Called(program), std::max(a.first, b.first)));
  finding.why =
      "The second one to bind it does not start. Rank r uses the port that is written plus r, "
      "for events and for replay.";
  finding.place = b.place;
  finding.evidence = {Describe(a), Describe(b)};
  findings.push_back(WithRemedies(plan, std::move(finding), {Move(plan, b, free)}, safety));
}

// Ranges that overlap; of each engine by itself, or between engines.
void CheckTogether(const Plan& plan, std::vector<PortRange> ranges, bool own, Safety safety,
                   LintFindings& findings) {
  const uint32_t free = FreePort(ranges);
  std::ranges::sort(ranges, {}, [](const PortRange& range) {
    return std::tie(range.first, range.place, range.use);
  });
  for (size_t i = 1; i < ranges.size(); ++i) {
    const PortRange& a = ranges[i - 1];
    const PortRange& b = ranges[i];
    if (b.first > a.last() || (a.engine == b.engine) != own) continue;
    // An HTTP port is known to others; the sockets for events are easier to move.
    const bool swap =
        a.use != b.use && (b.use == Use::kHttp || (a.use == Use::kReplay && b.use == Use::kEvents));
    AddCollision(plan, swap ? b : a, swap ? a : b, free, safety, findings);
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
  const size_t container = program.name.find(", container ");
  if (container != std::string::npos) {
    networks.push_back(
        fmt::format("pod {} {}", program.place.file, program.name.substr(0, container)));
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
