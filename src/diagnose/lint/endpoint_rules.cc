// endpoint-connects, replay-missing: can a router reach the publisher, and ask again?
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/lint/endpoint.h"
#include "diagnose/lint/events_config.h"
#include "diagnose/lint/remedy.h"
#include "diagnose/lint/rules.h"
#include "diagnose/manifest/identity.h"

namespace fathom {
namespace {

constexpr std::array kSglangBindsAny = {0u, 5u, 13u};

// Whether a Fathom stands before it that has no socket for publishers to connect to.
bool AwaitsItsBinding(const Plan& plan, const PlannedEngine& engine) {
  return std::ranges::any_of(plan.routers(), [&](const PlannedRouter& router) {
    const Program& program = *router.program;
    return program.role == ProgramRole::kFathom && program.Flag("--kv-events-bind") == nullptr &&
           program.Variable("FATHOM_KV_EVENTS_BIND") == nullptr &&
           program.Key("kv-events-bind") == nullptr &&
           std::ranges::any_of(router.engines,
                               [&](size_t i) { return &plan.engines()[i] == &engine; });
  });
}

// vLLM and SGLang decide by the text of the endpoint; TensorRT-LLM always binds.
std::optional<Severity> Gravity(const Plan& plan, const PlannedEngine& engine,
                                const PublisherEndpoint& endpoint) {
  const Program& program = *engine.program;
  if (endpoint.transport != "tcp" || endpoint.binds()) return std::nullopt;
  if (!endpoint.any_address()) {
    // Other routers bind an address, and every engine connects to it.
    if (!endpoint.local() && !AwaitsItsBinding(plan, engine)) return std::nullopt;
    return Severity::kWarning;
  }
  if (program.engine != EngineKind::kSglang) return Severity::kError;
  const std::string_view version = EngineVersionOf(program);
  if (version.empty() || AtLeast(version, kSglangBindsAny)) return std::nullopt;
  return Severity::kError;
}

std::string WhyItConnects(const PlannedEngine& engine, const PublisherEndpoint& endpoint) {
  std::string why = fmt::format(
      "{} binds only if the endpoint contains * or ::, and connects to any other address",
      Brand(engine.program->engine));
  why += endpoint.local()
             ? "; no process listens there, and its events are lost without an error."
             : "; Fathom connects to its engines and listens only with --kv-events-bind.";
  if (engine.program->engine == EngineKind::kSglang && endpoint.any_address()) {
    why += " SGLang binds 0.0.0.0 since 0.5.13.";
  }
  if (!endpoint.any_address()) {
    why += " This is correct only if a router binds that address (fathom serve --kv-events-bind).";
  }
  return why;
}

Remedy Bind(const Plan& plan, const PlannedEngine& engine, const PublisherEndpoint& endpoint) {
  const std::string bound = endpoint.Bound();
  const PublisherSettings& publisher = engine.settings.publisher;
  Remedy remedy;
  remedy.fix.what =
      fmt::format("Make {} bind: \"endpoint\": \"{}\".", Called(*engine.program), bound);
  remedy.fix.setting = fmt::format("\"endpoint\": \"{}\"", bound);
  remedy.fix.cost = "The engine restarts.";
  remedy.fix.verify = "fathom listen URL shows its events.";
  // Between other quotes a variable may not be one any more.
  if (!endpoint.port_variable.empty()) return remedy;
  remedy.edits = ChangePublisher(plan, publisher, {{"endpoint", Json(bound)}});
  if (remedy.edits.empty() && publisher.endpoint.written) {
    remedy.edits = Rewrite(plan, *publisher.endpoint.written, bound);
  }
  return remedy;
}

bool Publishes(const PlannedEngine& engine) {
  const EngineKind kind = engine.program->engine;
  return (kind == EngineKind::kVllm || kind == EngineKind::kSglang) &&
         engine.settings.publisher.enabled.value == true;
}

void CheckConnects(const Plan& plan, const PlannedEngine& engine, LintFindings& findings) {
  const auto& written = engine.settings.publisher.endpoint;
  const auto endpoint = written.value ? PublisherEndpoint::Parse(*written.value) : std::nullopt;
  const auto gravity = endpoint ? Gravity(plan, engine, *endpoint) : std::nullopt;
  if (!gravity) return;
  Finding finding =
      MakeFinding(FindingId::kEndpointConnects, engine.program->name,
                  fmt::format("the event publisher of {} connects to {} instead of binding it",
                              Called(*engine.program), *written.value));
  finding.severity = *gravity;
  finding.why = WhyItConnects(engine, *endpoint);
  finding.place = PlaceOf(written, *engine.program);
  findings.push_back(WithRemedies(plan, std::move(finding), {Bind(plan, engine, *endpoint)},
                                  endpoint->any_address() ? Safety::kSafe : Safety::kDecide));
}

// Behind the event sockets of all ranks; nothing where their port is not known.
std::optional<uint32_t> ReplayPort(const PlannedEngine& engine, const PublisherEndpoint& events) {
  if (!events.port_variable.empty()) return std::nullopt;
  const uint32_t port = events.port.value_or(5557) + engine.settings.data_parallel;
  return port <= UINT16_MAX ? std::optional(port) : std::nullopt;
}

std::vector<TextEdit> AddReplay(const Plan& plan, const PlannedEngine& engine,
                                const std::string& endpoint) {
  const PublisherSettings& publisher = engine.settings.publisher;
  if (publisher.whole->name.starts_with("--kv-events-config.")) {
    return AddFlag(plan, *engine.program, "--kv-events-config.replay_endpoint", endpoint);
  }
  return ChangePublisher(plan, publisher, {{"replay_endpoint", Json(endpoint)}});
}

Remedy Replay(const Plan& plan, const PlannedEngine& engine, const PublisherEndpoint& events) {
  Remedy remedy;
  remedy.fix.cost = "The engine restarts and keeps the last 10,000 batches in host memory.";
  remedy.fix.verify = "After a gap the router logs that it was repaired.";
  const auto port = ReplayPort(engine, events);
  if (!port) {
    remedy.fix.what = fmt::format(
        "Give {} a \"replay_endpoint\" with a port of its own: the event port plus the "
        "number of ranks, or more.",
        Called(*engine.program));
    remedy.fix.setting = "\"replay_endpoint\": \"tcp://*:PORT\"";
    return remedy;
  }
  const std::string endpoint = fmt::format("tcp://*:{}", *port);
  remedy.fix.what = fmt::format("Give {} a replay socket: \"replay_endpoint\": \"{}\".",
                                Called(*engine.program), endpoint);
  remedy.fix.setting = fmt::format("\"replay_endpoint\": \"{}\"", endpoint);
  remedy.edits = AddReplay(plan, engine, endpoint);
  return remedy;
}

void CheckReplay(const Plan& plan, const PlannedEngine& engine, LintFindings& findings) {
  const PublisherSettings& publisher = engine.settings.publisher;
  // Dynamo's workers repair gaps by a protocol of their own.
  if (engine.program->dynamo || publisher.replay_endpoint.value || !publisher.whole) return;
  const auto events = PublisherEndpoint::Parse(publisher.endpoint.value.value_or("tcp://*:5557"));
  if (!events || events->transport != "tcp") return;
  // One that is going to bind wants one as well.
  if (!events->binds() && !(events->any_address() && Gravity(plan, engine, *events))) return;
  Finding finding = MakeFinding(
      FindingId::kReplayMissing, engine.program->name,
      fmt::format("{} publishes KV events without a replay endpoint", Called(*engine.program)));
  finding.why =
      "Events that are lost, or published before the router started, cannot be replayed: after "
      "every gap the router clears its index of this engine.";
  finding.place = publisher.whole->place;
  findings.push_back(WithRemedies(plan, std::move(finding), {Replay(plan, engine, *events)}));
}

}  // namespace

void CheckEndpoints(const Plan& plan, LintFindings& findings) {
  for (const PlannedEngine& engine : plan.engines()) {
    if (!Publishes(engine) || engine.program->duty == Duty::kDecode) continue;
    CheckConnects(plan, engine, findings);
    CheckReplay(plan, engine, findings);
  }
}

}  // namespace fathom
