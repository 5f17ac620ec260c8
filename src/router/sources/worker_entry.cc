#include "router/sources/worker_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.h"
#include "codec/json.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, 8> kEntryKeys = {
    "url",  "kv_events", "kv_events_replay", "kv_events_topic", "api_key_env", "ca_file",
    "role", "labels"};

Result<void> ReadLabels(const Json& value, WorkerRequest& request) {
  if (value.object() == nullptr) {
    return Fail(Blame::kCaller, "'labels' must be an object of strings");
  }
  for (const auto& [name, label] : *value.object()) {
    if (label.string() == nullptr || name.empty()) {
      return Fail(Blame::kCaller, "label '{}' must be a string with a name", name.substr(0, 100));
    }
    request.labels.insert_or_assign(name, *label.string());
  }
  return {};
}

void SetText(std::string_view key, const std::string& text, WorkerRequest& request) {
  if (key == "url") {
    request.url = text;
  } else if (key == "kv_events") {
    request.kv_events = text;
  } else if (key == "kv_events_replay") {
    request.kv_events_replay = text;
  } else if (key == "kv_events_topic") {
    request.kv_events_topic = text;
  } else if (key == "api_key_env") {
    request.api_key_env = text;
  } else if (key == "ca_file") {
    request.ca_file = text;
  } else {
    request.role = text;
  }
}

Result<void> ReadSetting(const std::string& key, const Json& value, WorkerRequest& request) {
  if (std::ranges::find(kEntryKeys, key) == kEntryKeys.end()) {
    const auto near = Nearest(key, kEntryKeys);
    return Fail(Blame::kCaller, "unknown worker setting '{}'{}", key.substr(0, 100),
                near ? fmt::format("; did you mean '{}'?", *near) : "");
  }
  if (key == "labels") return ReadLabels(value, request);
  if (value.string() == nullptr) return Fail(Blame::kCaller, "'{}' must be a string", key);
  SetText(key, *value.string(), request);
  return {};
}

}  // namespace

Result<WorkerRequest> ReadWorkerEntry(std::string_view json) {
  if (json.size() > kLongestWorkerEntry) {
    return Fail(Blame::kCaller, "a worker entry has at most {} bytes", kLongestWorkerEntry);
  }
  TRY(const Json read, Json::Parse(json));
  WorkerRequest request;
  if (read.string() != nullptr) {
    request.url = *read.string();
  } else if (read.object() != nullptr) {
    for (const auto& [key, value] : *read.object()) TRY_VOID(ReadSetting(key, value, request));
  } else {
    return Fail(Blame::kCaller, R"(send a worker as {{"url": "http://host:port"}})");
  }
  if (request.url.empty()) return Fail(Blame::kCaller, "'url' is missing");
  return request;
}

WorkerRequest RequestOf(const WorkerEntry& entry, WorkerRequest::From from) {
  return {.url = entry.url,
          .kv_events = entry.kv_events,
          .kv_events_replay = entry.kv_events_replay,
          .kv_events_topic = entry.kv_events_topic,
          .api_key_env = entry.api_key_env.value_or(""),
          .ca_file = entry.ca_file.value_or(""),
          .host_name = {},
          .role = entry.role.value_or(""),
          .labels = entry.labels,
          .from = from};
}

}  // namespace fathom
