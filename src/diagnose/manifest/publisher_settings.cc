#include "diagnose/manifest/publisher_settings.h"

#include <algorithm>

#include "base/text.h"
#include "codec/json.h"
#include "diagnose/manifest/identity.h"
#include "diagnose/manifest/setting_lookup.h"

namespace fathom {
namespace {

constexpr std::string_view kEndpoint = "tcp://*:5557";
constexpr std::string_view kConfigFlag = "--kv-events-config";
constexpr std::string_view kConfigKey = "kv-events-config";
constexpr std::string_view kStreamKey = "kv_cache_config.kv_events_config";

// The members of the configuration, from a JSON text or from keys of a file.
class EventsConfig {
 public:
  EventsConfig(const Program& program, std::string_view key) : program_(program), key_(key) {}

  // Reads what is written; false if nothing is.
  bool Read(PublisherSettings& out) {
    // vLLM makes one configuration of them, which comes after one that is written as a whole.
    for (const Written& flag : program_.flags) {
      if (!IsMemberOf(kConfigFlag, flag.name)) continue;
      key_ = kConfigFlag;
      out.whole = flag;
      return true;
    }
    whole_ = FirstWritten(program_, {kConfigFlag, key_});
    if (whole_ != nullptr) {
      auto json = Json::Parse(whole_->value);
      if (json && json->object() != nullptr) json_ = *std::move(json);
      out.malformed = !json_;
      out.whole = *whole_;
      return true;
    }
    for (const Written& key : program_.keys) {
      if (!IsMemberOf(key_, key.name)) continue;
      out.whole = key;
      return true;
    }
    return false;
  }

  Setting<std::string> Text(std::string_view name, std::optional<std::string> otherwise) const {
    if (whole_ == nullptr) {
      const std::string dotted = std::string(key_).append(".").append(name);
      return TextOf(program_, {dotted}, std::move(otherwise));
    }
    const Json* member = json_ ? json_->Find(name) : nullptr;
    if (member == nullptr || member->is_null()) return {std::move(otherwise), std::nullopt};
    Written written{std::string(name), {}, whole_->place, std::nullopt};
    if (member->string() != nullptr) {
      written.value = *member->string();
    } else {
      member->WriteTo(written.value);
    }
    return {written.value, written};
  }

 private:
  static bool IsMemberOf(std::string_view map, std::string_view name) {
    if (name.size() <= map.size() || name[map.size()] != '.') return false;
    return std::ranges::equal(name.substr(0, map.size()), map, [](char a, char b) {
      return a == b || (a == '_' && b == '-') || (a == '-' && b == '_');
    });
  }

  const Program& program_;
  std::string_view key_;            // of the map that has the members
  const Written* whole_ = nullptr;  // as JSON
  std::optional<Json> json_;
};

void ReadSockets(const EventsConfig& config, PublisherSettings& out) {
  out.endpoint = config.Text("endpoint", std::string(kEndpoint));
  out.replay_endpoint = config.Text("replay_endpoint", std::nullopt);
  out.topic = config.Text("topic", "");
}

// The publisher that vLLM has where only the events are turned on.
std::optional<std::string> DefaultPublisher(const Program& program) {
  const auto old = IsOlder(EngineVersionOf(program), "0.11.1");
  return old.value_or(false) ? "null" : "zmq";
}

PublisherSettings OfVllm(const Program& program) {
  PublisherSettings out;
  EventsConfig config(program, kConfigKey);
  if (!config.Read(out)) {
    // Older workers of Dynamo configure it on their own.
    if (!program.dynamo && !program.unseen_file) out.enabled.value = false;
    return out;
  }
  if (out.malformed) return out;
  ReadSockets(config, out);
  const auto events = config.Text("enable_kv_cache_events", "false");
  const bool on = AsSwitch(*events.value).value_or(false);
  out.publisher = config.Text("publisher", on ? DefaultPublisher(program) : "null");
  out.enabled = {on && out.publisher.value == "zmq", out.whole};
  return out;
}

PublisherSettings OfSglang(const Program& program) {
  PublisherSettings out;
  EventsConfig config(program, kConfigKey);
  if (!config.Read(out)) {
    if (!program.dynamo && !program.unseen_file) out.enabled.value = false;
    return out;
  }
  if (out.malformed) return out;
  ReadSockets(config, out);
  out.publisher = config.Text("publisher", "null");
  out.enabled = {out.publisher.value == "zmq", out.whole};
  return out;
}

// Dynamo's worker polls the engine and publishes by itself.
PublisherSettings OfDynamoTrtllm(const Program& program) {
  PublisherSettings out;
  const Written* written = FirstWritten(
      program, {"--publish-kv-events", "--publish-events-and-metrics",
                "DYN_TRTLLM_PUBLISH_KV_EVENTS", "DYN_TRTLLM_PUBLISH_EVENTS_AND_METRICS"});
  if (written == nullptr) {
    out.enabled.value = false;
    return out;
  }
  out.enabled = {AsSwitch(written->value), *written};
  return out;
}

PublisherSettings OfTrtllm(const Program& program) {
  PublisherSettings out;
  EventsConfig config(program, kStreamKey);
  if (!config.Read(out)) {
    if (!program.unseen_file) out.enabled.value = false;
    return out;
  }
  if (out.malformed) return out;
  ReadSockets(config, out);
  out.publisher.value = "zmq";
  const auto events = config.Text("enable_kv_cache_events", "false");
  out.enabled = {AsSwitch(*events.value), events.written ? events.written : out.whole};
  return out;
}

std::vector<uint64_t> NumbersOf(std::string_view version) {
  std::vector<uint64_t> numbers;
  for (const std::string_view part : SplitAny(version, ".")) {
    numbers.push_back(ParseDecimal(part).value_or(0));
  }
  return numbers;
}

}  // namespace

std::optional<bool> IsOlder(std::string_view version, std::string_view than) {
  if (version.empty()) return std::nullopt;
  return NumbersOf(version) < NumbersOf(than);
}

PublisherSettings PublisherSettingsOf(const Program& program) {
  switch (program.engine) {
    case EngineKind::kVllm:
      return OfVllm(program);
    case EngineKind::kSglang:
      return OfSglang(program);
    case EngineKind::kTrtllm:
      return program.dynamo ? OfDynamoTrtllm(program) : OfTrtllm(program);
    case EngineKind::kUnknown:
      break;
  }
  return {};
}

}  // namespace fathom
