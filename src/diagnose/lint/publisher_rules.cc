// publisher-off, event-buffer-off: does the engine say what its cache holds?
#include <fmt/format.h>

#include "diagnose/lint/events_config.h"
#include "diagnose/lint/remedy.h"
#include "diagnose/lint/rules.h"

namespace fathom {
namespace {

constexpr std::string_view kEffect =
    "A router that uses KV events cannot see this engine's cache and routes it by load.";

bool Is(const PlannedEngine& engine, EngineKind kind) { return engine.program->engine == kind; }

// TensorRT-LLM keeps events to be polled, unless it streams them.
bool Polls(const PlannedEngine& engine) {
  return Is(engine, EngineKind::kTrtllm) && !engine.program->dynamo &&
         !engine.settings.publisher.whole;
}

std::string OffMessage(const PlannedEngine& engine) {
  const PublisherSettings& publisher = engine.settings.publisher;
  const std::string name = Called(*engine.program);
  if (publisher.malformed) {
    return fmt::format("{} of {} is not a JSON object", publisher.whole->name, name);
  }
  if (!publisher.whole)
    return fmt::format("{} publishes no KV events, but a router expects them", name);
  if (publisher.publisher.value == "null") {
    return fmt::format("{} uses the publisher \"null\"{}, which discards its KV events", name,
                       publisher.publisher.written ? "" : ", its default");
  }
  return fmt::format("{} of {} turns KV events off", publisher.whole->name, name);
}

Remedy PublishFromDynamo(const Plan& plan, const Program& program) {
  Remedy remedy;
  remedy.fix.what = fmt::format("Start {} with --publish-events-and-metrics.", Called(program));
  remedy.fix.setting = "--publish-events-and-metrics";
  remedy.edits = AddFlag(plan, program, "--publish-events-and-metrics", "");
  return remedy;
}

Remedy PublishByKeys(const Plan& plan, const PlannedEngine& engine) {
  const auto& enabled = engine.settings.publisher.enabled.written;
  Remedy remedy;
  remedy.fix.what =
      fmt::format("Set enable_kv_cache_events in kv_cache_config.kv_events_config of {}.",
                  Called(*engine.program));
  remedy.fix.setting =
      "kv_cache_config:\n  use_kv_cache_manager_v2: true\n  kv_events_config:\n"
      "    enable_kv_cache_events: true\n    endpoint: \"tcp://*:5557\"";
  if (enabled) remedy.edits = Rewrite(plan, *enabled, "true");
  return remedy;
}

Remedy PublishByConfig(const Plan& plan, const PlannedEngine& engine) {
  const Program& program = *engine.program;
  const PublisherSettings& publisher = engine.settings.publisher;
  const std::string config = NewEventsConfig(engine);
  Remedy remedy;
  remedy.fix.what =
      fmt::format("Make {} publish: --kv-events-config with the publisher zmq.", Called(program));
  remedy.fix.setting = fmt::format("--kv-events-config '{}'", config);
  if (!publisher.whole) {
    remedy.edits = AddFlag(plan, program, "--kv-events-config", config);
  } else if (publisher.malformed) {
    remedy.edits = Rewrite(plan, *publisher.whole, config);
  } else {
    ConfigChanges changes = {{"publisher", Json(std::string("zmq"))}};
    if (program.engine == EngineKind::kVllm) {
      changes.emplace(changes.begin(), "enable_kv_cache_events", Json(true));
    }
    remedy.edits = ChangePublisher(plan, publisher, changes);
  }
  return remedy;
}

Remedy Publish(const Plan& plan, const PlannedEngine& engine) {
  const bool trtllm = Is(engine, EngineKind::kTrtllm);
  Remedy remedy = trtllm && engine.program->dynamo ? PublishFromDynamo(plan, *engine.program)
                  : trtllm                         ? PublishByKeys(plan, engine)
                                                   : PublishByConfig(plan, engine);
  remedy.fix.cost = "The engine restarts; publishing costs almost nothing.";
  remedy.fix.verify = "fathom listen URL shows its events.";
  return remedy;
}

void CheckPublisher(const Plan& plan, const PlannedEngine& engine, LintFindings& findings) {
  const PublisherSettings& publisher = engine.settings.publisher;
  const bool off = publisher.enabled.value == false || publisher.malformed;
  if (!off || Polls(engine)) return;
  // Alone, an engine without events is as it should be; one with events that go nowhere is not.
  if (!publisher.whole && (!engine.routed_by_cache || engine.program->unseen_file)) return;
  Finding finding = MakeFinding(FindingId::kPublisherOff, engine.program->name, OffMessage(engine));
  finding.why = kEffect;
  if (Is(engine, EngineKind::kSglang)) finding.why += " SGLang's default publisher is \"null\".";
  if (Is(engine, EngineKind::kVllm)) {
    finding.why +=
        " vLLM publishes only with enable_kv_cache_events, and before 0.11.1 only if the "
        "publisher is named.";
  }
  finding.place = publisher.whole ? publisher.whole->place : engine.program->place;
  findings.push_back(WithRemedies(plan, std::move(finding), {Publish(plan, engine)}));
}

Remedy KeepEvents(const Plan& plan, const PlannedEngine& engine) {
  constexpr std::string_view kKey = "kv_cache_config.event_buffer_max_size";
  constexpr std::string_view kEvents = "16384";
  const auto& written = engine.settings.event_buffer.written;
  Remedy remedy;
  remedy.fix.what = fmt::format("Set {} of {} to {}.", kKey, Called(*engine.program), kEvents);
  remedy.fix.setting = fmt::format(
      "kv_cache_config:\n  enable_block_reuse: true\n  event_buffer_max_size: {}", kEvents);
  remedy.fix.cost = "The engine restarts; the buffer is host memory, a few MiB.";
  remedy.fix.verify = "The router's KV feed of this worker counts events.";
  remedy.edits = written
                     ? Rewrite(plan, *written, kEvents)
                     : AddKey(plan, *engine.program, kKey, kEvents, "KV events, for the router");
  return remedy;
}

void CheckEventBuffer(const Plan& plan, const PlannedEngine& engine, LintFindings& findings) {
  const auto& buffer = engine.settings.event_buffer;
  if (!Is(engine, EngineKind::kTrtllm) || buffer.value != 0u) return;
  if (engine.settings.publisher.whole && engine.settings.publisher.enabled.value != false) return;
  // Dynamo's worker sizes the buffer itself, unless the file says otherwise.
  const bool by_default_wrong =
      engine.routed_by_cache && !engine.program->dynamo && !engine.program->unseen_file;
  if (!buffer.written && !by_default_wrong) return;
  Finding finding = MakeFinding(
      FindingId::kEventBufferOff, engine.program->name,
      fmt::format("event_buffer_max_size of {} is 0{}: it keeps no KV events",
                  Called(*engine.program), buffer.written ? "" : ", the default of TensorRT-LLM"));
  finding.why = kEffect;
  finding.place = PlaceOf(buffer, *engine.program);
  findings.push_back(WithRemedies(plan, std::move(finding), {KeepEvents(plan, engine)}));
}

}  // namespace

void CheckPublishers(const Plan& plan, LintFindings& findings) {
  for (const PlannedEngine& engine : plan.engines()) {
    if (engine.program->duty == Duty::kDecode) continue;
    CheckPublisher(plan, engine, findings);
    CheckEventBuffer(plan, engine, findings);
  }
}

}  // namespace fathom
