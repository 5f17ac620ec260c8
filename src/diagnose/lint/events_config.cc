#include "diagnose/lint/events_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/lint/remedy.h"

namespace fathom {
namespace {

std::string Write(const Json::Object& members, bool spaced) {
  std::string text = "{";
  for (const auto& [key, value] : members) {
    if (text.size() > 1) text += spaced ? ", " : ",";
    Json(key).WriteTo(text);
    text += spaced ? ": " : ":";
    value.WriteTo(text);
  }
  return text + "}";
}

}  // namespace

std::string WithChanges(std::string_view config, const ConfigChanges& changes) {
  const auto json = Json::Parse(config);
  if (!json || json->object() == nullptr) return {};
  Json::Object members = *json->object();
  for (const auto& [key, value] : changes) {
    const auto member = std::ranges::find(members, key, &Json::Object::value_type::first);
    if (member == members.end()) {
      members.emplace_back(key, value);
    } else {
      member->second = value;
    }
  }
  return Write(members, config.contains("\": "));
}

std::vector<TextEdit> ChangePublisher(const Plan& plan, const PublisherSettings& publisher,
                                      const ConfigChanges& changes) {
  if (!publisher.whole) return {};
  const std::string text = WithChanges(publisher.whole->value, changes);
  return text.empty() ? std::vector<TextEdit>() : Rewrite(plan, *publisher.whole, text);
}

std::string NewEventsConfig(const PlannedEngine& engine) {
  constexpr uint32_t kPort = 5557;
  const std::string_view enable =
      engine.program->engine == EngineKind::kVllm ? "\"enable_kv_cache_events\":true," : "";
  return fmt::format(
      R"({{{}"publisher":"zmq","endpoint":"tcp://*:{}","replay_endpoint":"tcp://*:{}"}})", enable,
      kPort, kPort + std::max(1u, engine.settings.data_parallel));
}

}  // namespace fathom
