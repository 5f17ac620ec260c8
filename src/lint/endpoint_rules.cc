// endpoint-connects, replay-missing: can a router reach the publisher, and ask again?
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lint/endpoint.h"
#include "lint/events_config.h"
#include "lint/remedy.h"
#include "lint/rules.h"

namespace fathom {
namespace {

constexpr std::array kSglangBindsAny = {0u, 5u, 13u};

// vLLM and SGLang decide by the text of the endpoint; TensorRT-LLM always binds.
std::optional<Severity> Gravity(const PlannedEngine& engine, const Endpoint& endpoint) {
  const Program& program = *engine.program;
  if (endpoint.transport != "tcp" || endpoint.binds()) return std::nullopt;
  // Another address may be that of a router which binds.
  if (!endpoint.any_address()) return Severity::kWarning;
  if (program.engine != EngineKind::kSglang) return Severity::kError;
  if (AtLeast(program.version, kSglangBindsAny)) return std::nullopt;
  return program.version.empty() ? Severity::kWarning : Severity::kError;
}

std::string WhyItConnects(const PlannedEngine& engine, const Endpoint& endpoint) {
  std::string why = fmt::format(
      "{} binds only where the endpoint has a * or :: in it, and connects to everything else; "
      "nobody "
      "listens there, and its events go nowhere without an error.",
      Brand(engine.program->engine));
  if (engine.program->engine == EngineKind::kSglang && endpoint.any_address()) {
    why += " SGLang binds 0.0.0.0 since 0.5.13.";
  }
  if (!endpoint.any_address()) {
    why += " It is right only where a router binds that address (fathom serve --kv-events-bind).";
  }
  return why;
}

Remedy Bind(const Plan& plan, const PlannedEngine& engine, const Endpoint& endpoint) {
  const std::string bound = fmt::format("tcp://*:{}", endpoint.port.value_or(5557));
  const PublisherSettings& publisher = engine.settings.publisher;
  Remedy remedy;
  remedy.fix.what =
      fmt::format("Let {} bind: \"endpoint\": \"{}\".", Called(*engine.program), bound);
  remedy.fix.setting = fmt::format("\"endpoint\": \"{}\"", bound);
  remedy.fix.cost = "The engine restarts.";
  remedy.fix.verify = "fathom listen URL shows its events.";
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
  const auto endpoint = written.value ? Endpoint::Parse(*written.value) : std::nullopt;
  const auto gravity = endpoint ? Gravity(engine, *endpoint) : std::nullopt;
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

Remedy Replay(const Plan& plan, const PlannedEngine& engine, uint16_t events) {
  const uint32_t port = events + std::max(1u, engine.settings.data_parallel);
  const std::string endpoint = fmt::format("tcp://*:{}", port);
  Remedy remedy;
  remedy.fix.what = fmt::format("Give {} a replay socket: \"replay_endpoint\": \"{}\".",
                                Called(*engine.program), endpoint);
  remedy.fix.setting = fmt::format("\"replay_endpoint\": \"{}\"", endpoint);
  remedy.fix.cost = "The engine restarts and keeps the last 10,000 batches in host memory.";
  remedy.fix.verify = "After a gap the router's log says that it was repaired.";
  remedy.edits =
      ChangePublisher(plan, engine.settings.publisher, {{"replay_endpoint", Json(endpoint)}});
  return remedy;
}

void CheckReplay(const Plan& plan, const PlannedEngine& engine, LintFindings& findings) {
  const PublisherSettings& publisher = engine.settings.publisher;
  // Dynamo's workers repair gaps by a protocol of their own.
  if (engine.program->dynamo || publisher.replay_endpoint.value || !publisher.whole) return;
  const auto events = Endpoint::Parse(publisher.endpoint.value.value_or("tcp://*:5557"));
  if (!events || events->transport != "tcp" || !events->binds()) return;
  Finding finding = MakeFinding(
      FindingId::kReplayMissing, engine.program->name,
      fmt::format("{} publishes KV events without a replay endpoint", Called(*engine.program)));
  finding.why =
      "Events that are lost, or published before the router started, cannot be asked for again: it "
      "forgets what this engine holds after every gap.";
  finding.place = publisher.whole->place;
  findings.push_back(
      WithRemedies(plan, std::move(finding), {Replay(plan, engine, events->port.value_or(5557))}));
}

}  // namespace

void CheckEndpoints(const Plan& plan, LintFindings& findings) {
  for (const PlannedEngine& engine : plan.engines()) {
    if (!Publishes(engine)) continue;
    CheckConnects(plan, engine, findings);
    CheckReplay(plan, engine, findings);
  }
}

}  // namespace fathom
