#include "router/gateway/operator_pages.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "codec/json.h"
#include "codec/url.h"
#include "router/gateway/health_page.h"
#include "router/gateway/openai_error.h"

namespace fathom {
namespace {

void WriteIds(JsonWriter& w, std::string_view key, const std::vector<WorkerId>& ids) {
  w.Key(key).BeginArray();
  for (const WorkerId id : ids) w.Unsigned(id.value());
  w.EndArray();
}

void WriteName(JsonWriter& w, const DnsWatch::NameState& name) {
  w.BeginObject().Key("id").Unsigned(name.id.value()).Key("url").String(name.url);
  WriteIds(w, "workers", name.workers);
  WriteIds(w, "taken_out", name.taken_out);
  w.Key("problem");
  name.problem.empty() ? w.Null() : w.String(name.problem);
  w.EndObject();
}

// A worker entry, the same map as in the configuration file.
Result<WorkerRequest> ReadWorkerRequest(std::string_view body) {
  TRY(const Json json, Json::Parse(body));
  WorkerRequest request;
  if (json.string() != nullptr) {
    request.url = *json.string();
    return request;
  }
  if (json.object() == nullptr) {
    return Fail(Blame::kCaller, R"(send a worker as {{"url": "http://host:port"}})");
  }
  constexpr std::array<std::string_view, 6> kKeys = {
      "url", "kv_events", "kv_events_replay", "kv_events_topic", "api_key_env", "ca_file"};
  for (const auto& [key, value] : *json.object()) {
    if (value.string() == nullptr) return Fail(Blame::kCaller, "'{}' must be a string", key);
    const std::string& text = *value.string();
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
      const auto near = Nearest(key, kKeys);
      return Fail(Blame::kCaller, "unknown worker setting '{}'{}", key,
                  near ? fmt::format("; did you mean '{}'?", *near) : "");
    }
  }
  if (request.url.empty()) return Fail(Blame::kCaller, "'url' is missing");
  return request;
}

}  // namespace

bool OperatorPages::TakesBody(const RequestHead& head, std::string_view path) {
  return head.method == "POST" &&
         (path == "/workers" || path == DebugPages::kLookup || path == DebugPages::kExplain);
}

Task<Answer> OperatorPages::Make(const PageQuestion& question) {
  const std::string_view path = question.path;
  if (path == "/health") {
    co_return question.gets() ? HealthPage(context_, question.whole_health)
                              : MethodNotAllowed("GET");
  }
  if (path == "/metrics") {
    co_return question.gets() ? Metrics(question.with_urls) : MethodNotAllowed("GET");
  }
  if (path.starts_with("/workers")) co_return Workers(question);
  auto making = Debug(question);
  co_return co_await making;
}

Answer OperatorPages::Metrics(bool with_urls) const {
  const auto fleet = context_.fleet.Current();
  const auto info = [&](Exposition& out) { CollectWorkerInfo(*fleet, with_urls, out); };
  return {.content_type = std::string(Exposition::kContentType),
          .body = context_.registry.Render(info)};
}

Answer OperatorPages::Workers(const PageQuestion& question) {
  const std::string_view path = question.path;
  const std::string_view method = question.head.method;
  constexpr std::string_view kOne = "/workers/";
  if (path.starts_with(kOne)) {
    if (method != "DELETE") return MethodNotAllowed("DELETE");
    return RemoveWorker(path.substr(kOne.size()));
  }
  if (method == "POST") return AddWorker(question.body);
  if (method != "GET") return MethodNotAllowed("GET, POST");
  JsonWriter w;
  w.BeginObject();
  WriteWorkers(w, context_, *context_.fleet.Current());
  const auto names = context_.dns_watch == nullptr ? std::vector<DnsWatch::NameState>()
                                                   : context_.dns_watch->Names();
  if (!names.empty()) {
    w.Key("names").BeginArray();
    for (const DnsWatch::NameState& name : names) WriteName(w, name);
    w.EndArray();
  }
  w.EndObject();
  return {.body = w.Take()};
}

Task<Answer> OperatorPages::Debug(const PageQuestion& question) {
  const std::string_view path = question.path;
  const std::string_view method = question.head.method;
  if (path == DebugPages::kLookup) {
    co_return method == "POST" ? debug_.Lookup(question.body) : MethodNotAllowed("POST");
  }
  if (path == DebugPages::kDecisions) {
    co_return method == "GET" ? debug_.Decisions(question.head) : MethodNotAllowed("GET");
  }
  if (path == DebugPages::kIndex) {
    if (method != "GET") co_return MethodNotAllowed("GET");
    auto counting = debug_.Index();
    co_return co_await counting;
  }
  if (path == DebugPages::kExplain) {
    if (method != "POST") co_return MethodNotAllowed("POST");
    auto explaining = debug_.Explain(question.head, question.body);
    co_return co_await explaining;
  }
  co_return OpenAiError(404, "not_found", "there is nothing at this path");
}

Answer OperatorPages::AddWorker(std::string_view body) {
  constexpr size_t kLongest = 64 << 10;
  if (body.size() > kLongest) {
    return OpenAiError(400, "bad_worker",
                       fmt::format("a worker entry has at most {} bytes", kLongest));
  }
  const auto request = ReadWorkerRequest(body);
  if (!request) return OpenAiError(400, "bad_worker", request.error().what);
  if (context_.dns_watch != nullptr && DnsWatch::IsName(request->url)) return AddName(*request);
  const auto url = Url::Parse(request->url);
  if (!url) return OpenAiError(400, "bad_worker", url.error().what, "url");
  if (context_.fleet.Current()->Find(WorkerId::OfUrl(url->ToString())) != nullptr) {
    return OpenAiError(409, "worker_exists",
                       fmt::format("worker {} is already in the fleet", url->ToString()), "url");
  }
  const auto worker = context_.dns_watch != nullptr ? context_.dns_watch->Join(*request)
                                                    : context_.directory.Join(*request);
  if (!worker) return OpenAiError(400, "bad_worker", worker.error().what);
  JsonWriter w;
  w.BeginObject().Key("id").Unsigned((*worker)->id().value());
  w.Key("url").String((*worker)->spec().url).EndObject();
  return {.status = 201, .body = w.Take()};
}

// The answer does not wait for the first lookup, which adds the workers.
Answer OperatorPages::AddName(const WorkerRequest& request) {
  const auto name = context_.dns_watch->Watch(request);
  if (!name) return OpenAiError(400, "bad_worker", name.error().what, "url");
  JsonWriter w;
  WriteName(w, *name);
  return {.status = 202, .body = w.Take()};
}

Answer OperatorPages::RemoveWorker(std::string_view id) {
  const auto number = ParseDecimal(id);
  const auto leave = [&](WorkerId worker) {
    return context_.dns_watch != nullptr ? context_.dns_watch->Leave(worker)
                                         : context_.directory.Leave(worker);
  };
  if (!number || !leave(WorkerId(*number))) {
    return OpenAiError(404, "no_such_worker", fmt::format("there is no worker '{}'", id));
  }
  return {.status = 204, .body = ""};
}

}  // namespace fathom
