#include "gateway/admin.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "base/text.h"
#include "codec/json.h"
#include "codec/url.h"
#include "gateway/health_page.h"
#include "gateway/openai_error.h"

namespace fathom {
namespace {

Answer MethodNotAllowed(std::string_view allowed) {
  Answer answer = OpenAiError(405, "method_not_allowed", fmt::format("use {} here", allowed));
  answer.headers.emplace_back("allow", std::string(allowed));
  return answer;
}

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
      return Fail(Blame::kCaller, "a worker has no '{}'{}", key,
                  near ? fmt::format("; did you mean '{}'?", *near) : "");
    }
  }
  if (request.url.empty()) return Fail(Blame::kCaller, "'url' is missing");
  return request;
}

}  // namespace

Answer AdminPages::Respond(const RequestHead& head, std::string_view path, std::string_view body,
                           Scope scope) {
  const bool get = head.method == "GET" || head.method == "HEAD";
  if (path == "/live")
    return get ? Answer{.body = R"({"status":"live"})"} : MethodNotAllowed("GET");
  if (path == "/ready") return get ? ReadyPage(context_) : MethodNotAllowed("GET");
  if (path == "/health") {
    if (!get) return MethodNotAllowed("GET");
    return HealthPage(context_, scope == Scope::kAll && context_.admin_keys.Admits(head));
  }
  if (path == "/metrics") {
    if (!get) return MethodNotAllowed("GET");
    return {.content_type = std::string(Exposition::kContentType),
            .body = context_.registry.Render()};
  }
  if (path == "/v1/models" || path.starts_with("/v1/models/")) {
    if (!get) return MethodNotAllowed("GET");
    if (!context_.api_keys.Admits(head)) {
      return OpenAiError(401, "invalid_api_key", "a valid API key is required in Authorization");
    }
    return Models(path);
  }
  const bool workers = path == "/workers" || path.starts_with("/workers/");
  if (scope == Scope::kAll && (workers || path.starts_with("/debug/"))) {
    if (!context_.admin_keys.Admits(head)) {
      return OpenAiError(401, "invalid_admin_key", "the admin key is required in Authorization");
    }
    return workers ? Workers(head, path, body) : Debug(head, path, body);
  }
  if (path.starts_with("/v1/")) return MethodNotAllowed("POST");
  return OpenAiError(404, "not_found", "there is nothing at this path");
}

// Each model once, as the first worker that serves it describes it.
Answer AdminPages::Models(std::string_view path) const {
  const auto fleet = context_.fleet.Current();
  std::map<std::string_view, std::string_view> cards;
  for (const Member& member : fleet->members()) {
    if (member.state != WorkerState::kReady) continue;
    for (size_t i = 0; i < member.models.size(); ++i) {
      cards.try_emplace(member.models[i], member.model_cards[i]);
    }
  }
  constexpr std::string_view kOne = "/v1/models/";
  if (path.starts_with(kOne)) {
    const std::string id = PercentDecode(path.substr(kOne.size()));
    const auto found = cards.find(id);
    if (found != cards.end()) return {.body = std::string(found->second)};
    return OpenAiError(404, "model_not_found", fmt::format("no worker serves the model '{}'", id),
                       "model");
  }
  JsonWriter w;
  w.BeginObject().Key("object").String("list").Key("data").BeginArray();
  for (const auto& [id, card] : cards) w.Raw(card);
  w.EndArray().EndObject();
  return {.body = w.Take()};
}

Answer AdminPages::Workers(const RequestHead& head, std::string_view path, std::string_view body) {
  constexpr std::string_view kOne = "/workers/";
  if (path.starts_with(kOne)) {
    if (head.method != "DELETE") return MethodNotAllowed("DELETE");
    return RemoveWorker(path.substr(kOne.size()));
  }
  if (head.method == "POST") return AddWorker(body);
  if (head.method != "GET") return MethodNotAllowed("GET, POST");
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

Answer AdminPages::Debug(const RequestHead& head, std::string_view path, std::string_view body) {
  if (path == DebugPages::kLookup) {
    return head.method == "POST" ? debug_.Lookup(body) : MethodNotAllowed("POST");
  }
  if (path == DebugPages::kIndex) {
    return head.method == "GET" ? debug_.Index() : MethodNotAllowed("GET");
  }
  if (path == DebugPages::kDecisions) {
    return head.method == "GET" ? debug_.Decisions(head) : MethodNotAllowed("GET");
  }
  if (path == DebugPages::kExplain) return MethodNotAllowed("POST");
  return OpenAiError(404, "not_found", "there is nothing at this path");
}

Answer AdminPages::AddWorker(std::string_view body) {
  const auto request = ReadWorkerRequest(body);
  if (!request) return OpenAiError(400, "bad_worker", request.error().what);
  if (context_.dns_watch != nullptr && DnsWatch::IsName(request->url)) return AddName(*request);
  const auto url = Url::Parse(request->url);
  if (!url) return OpenAiError(400, "bad_worker", url.error().what, "url");
  if (context_.fleet.Current()->Find(WorkerId::OfUrl(url->ToString())) != nullptr) {
    return OpenAiError(409, "worker_exists",
                       fmt::format("worker {} is in the fleet already", url->ToString()), "url");
  }
  const auto worker = context_.dns_watch != nullptr ? context_.dns_watch->Join(*request)
                                                    : context_.directory.Join(*request);
  if (!worker) return OpenAiError(400, "bad_worker", worker.error().what);
  JsonWriter w;
  w.BeginObject().Key("id").Unsigned((*worker)->id().value());
  w.Key("url").String((*worker)->spec().url).EndObject();
  return {.status = 201, .body = w.Take()};
}

// Its workers come with the first lookup, which nobody waits for here.
Answer AdminPages::AddName(const WorkerRequest& request) {
  const auto name = context_.dns_watch->Watch(request);
  if (!name) return OpenAiError(400, "bad_worker", name.error().what, "url");
  JsonWriter w;
  WriteName(w, *name);
  return {.status = 202, .body = w.Take()};
}

Answer AdminPages::RemoveWorker(std::string_view id) {
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

bool AdminPages::WantsBody(const RequestHead& head, std::string_view path, Scope scope) const {
  const bool wanted =
      path == "/workers" || path == DebugPages::kLookup || path == DebugPages::kExplain;
  return head.method == "POST" && wanted && scope == Scope::kAll &&
         context_.admin_keys.Admits(head);
}

bool AdminPages::WantsExplanation(const RequestHead& head, std::string_view path,
                                  Scope scope) const {
  return path == DebugPages::kExplain && WantsBody(head, path, scope);
}

Task<void> AdminPages::Serve(ServerConnection& connection, std::string_view path, Scope scope) {
  const RequestHead& head = connection.head();
  std::string_view body;
  std::optional<RequestProblem> problem;
  if (WantsBody(head, path, scope)) {
    auto reading = connection.ReadBody();
    const auto read = co_await reading;
    if (read) body = *read;
    if (!read) problem = read.error();
  }
  if (problem && problem->status == 0) co_return;
  Answer answer;
  if (problem) {
    answer = OpenAiError(problem->status, "bad_request", problem->what);
  } else if (WantsExplanation(head, path, scope)) {
    auto explaining = debug_.Explain(head, body);
    answer = co_await explaining;
  } else {
    answer = Respond(head, path, body, scope);
  }
  context_.metrics.CountRequest(Route::kOwn, answer.status);
  auto responding = connection.Respond(answer);
  co_await responding;
}

Task<void> AdminHandler::Handle(ServerConnection& connection) {
  const std::string_view target = connection.head().target;
  const std::string_view path = target.substr(0, target.find('?'));
  auto serving = pages_.Serve(connection, path, AdminPages::Scope::kAll);
  co_await serving;
}

Answer AdminHandler::Refuse(const RequestProblem& problem) {
  return OpenAiError(problem.status, "bad_request", problem.what);
}

}  // namespace fathom
