#include "router/gateway/operator_pages.h"

#include <fmt/format.h>

#include "base/text.h"
#include "codec/json.h"
#include "codec/url.h"
#include "router/gateway/health_page.h"
#include "router/gateway/openai_error.h"
#include "router/gateway/source_pages.h"
#include "router/gateway/worker_admission.h"
#include "router/sources/worker_entry.h"

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
  const auto info = [&](Exposition& out) {
    CollectWorkerInfo(*fleet, with_urls, out);
    CollectSources(context_.sources, with_urls, out);
    CollectWaits(context_, *fleet, out);
  };
  return {.content_type = std::string(Exposition::kContentType),
          .body = context_.registry.Render(info)};
}

Answer OperatorPages::Workers(const PageQuestion& question) {
  const std::string_view path = question.path;
  const std::string_view method = question.head.method;
  constexpr std::string_view kOne = "/workers/";
  if (path.starts_with(kOne)) {
    constexpr std::string_view kReady = "/ready";
    if (path.ends_with(kReady)) {
      const std::string_view id = path.substr(kOne.size());
      return question.gets() ? WorkerReadyPage(context_, id.substr(0, id.size() - kReady.size()))
                             : MethodNotAllowed("GET");
    }
    if (method != "DELETE") return MethodNotAllowed("DELETE");
    return RemoveWorker(path.substr(kOne.size()));
  }
  if (method == "POST") return AddWorker(question.body);
  if (method != "GET") return MethodNotAllowed("GET, POST");
  JsonWriter w;
  w.BeginObject();
  WriteWorkers(w, context_, *context_.fleet.Current());
  const auto names =
      context_.sources == nullptr ? std::vector<DnsWatch::NameState>() : context_.sources->Names();
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
  const auto request = ReadWorkerEntry(body);
  if (!request) return OpenAiError(400, "bad_worker", request.error().what);
  if (context_.sources == nullptr) return OpenAiError(400, "bad_worker", "the fleet is fixed");
  if (DnsWatch::IsName(request->url)) return AddName(*request);
  const auto url = Url::Parse(request->url);
  if (!url) return OpenAiError(400, "bad_worker", url.error().what, "url");
  if (context_.sources->IsWritten(WorkerId::OfUrl(url->ToString()))) {
    return OpenAiError(409, "worker_exists",
                       fmt::format("worker {} is already in the fleet", url->ToString()), "url");
  }
  const auto worker = context_.sources->Join(*request);
  if (!worker) return OpenAiError(400, "bad_worker", worker.error().what);
  JsonWriter w;
  w.BeginObject().Key("id").Unsigned((*worker)->id().value());
  w.Key("url").String((*worker)->spec().url).EndObject();
  return {.status = 201, .body = w.Take()};
}

// The answer does not wait for the first lookup, which adds the workers.
Answer OperatorPages::AddName(const WorkerRequest& request) {
  const auto name = context_.sources->Watch(request);
  if (!name) return OpenAiError(400, "bad_worker", name.error().what, "url");
  JsonWriter w;
  WriteName(w, *name);
  return {.status = 202, .body = w.Take()};
}

Answer OperatorPages::RemoveWorker(std::string_view id) {
  const auto number = ParseDecimal(id);
  if (!number || context_.sources == nullptr || !context_.sources->Leave(WorkerId(*number))) {
    return OpenAiError(404, "no_such_worker", fmt::format("there is no worker '{}'", id));
  }
  return {.status = 204, .body = ""};
}

}  // namespace fathom
