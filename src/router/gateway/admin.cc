#include "router/gateway/admin.h"

#include <fmt/format.h>

#include <map>

#include "codec/request_target.h"
#include "codec/url.h"
#include "router/gateway/health_page.h"
#include "router/gateway/openai_error.h"
#include "router/gateway/worker_admission.h"

namespace fathom {

// Pages that cost little. A process is alive if the loops of its requests are, so they answer.
std::optional<Answer> AdminPages::Quick(const RequestHead& head, std::string_view path) const {
  const bool get = head.method == "GET" || head.method == "HEAD";
  const bool models = path == "/v1/models" || path.starts_with("/v1/models/");
  if (path != "/live" && path != "/ready" && !models) return std::nullopt;
  if (!get) return MethodNotAllowed("GET");
  if (path == "/live") return Answer{.body = R"({"status":"live"})"};
  if (path == "/ready") {
    auto of_worker = ReadyOfWorker(context_, head);
    return of_worker ? *std::move(of_worker) : ReadyPage(context_);
  }
  if (!context_.api_keys.Admits(head)) {
    return OpenAiError(401, "invalid_api_key", "a valid API key is required in Authorization");
  }
  return Models(path);
}

// Each model once, with the card of the first worker that serves it.
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

// The control loop makes the page while this loop serves other connections.
Task<Answer> AdminPages::AskDesk(const RequestHead& head, std::string_view path,
                                 std::string_view body) {
  const bool shows_urls = urls_ == Urls::kShown && !door_.IsForeign(head);
  const PageQuestion question{.head = head,
                              .path = path,
                              .body = body,
                              .whole_health = door_.ShowsAll(head),
                              .with_urls = shows_urls || context_.options.metrics_urls};
  auto asking = desk_.Ask(loop_, question);
  co_return co_await asking;
}

Task<void> AdminPages::Serve(ServerConnection& connection, std::string_view path) {
  const RequestHead& head = connection.head();
  const bool guarded = door_.Guards(path);
  std::optional<Answer> answer = guarded ? door_.Refuse(head) : Quick(head, path);
  std::string_view body;
  if (!answer && guarded && OperatorPages::TakesBody(head, path)) {
    auto reading = connection.ReadBody();
    const auto read = co_await reading;
    if (read) body = *read;
    if (!read && read.error().status == 0) co_return;
    if (!read) answer = OpenAiError(read.error().status, "bad_request", read.error().what);
  }
  if (!answer && (guarded || path == "/health" || path == "/metrics")) {
    auto asking = AskDesk(head, path, body);
    answer = co_await asking;
  }
  if (!answer) {
    answer = OpenAiError(404, "not_found",
                         "there is nothing at this path, and it is not passed to workers; the "
                         "router's --pass-routes adds paths that are");
  }
  const bool of_worker = AsksOfOneWorker(head, path);
  context_.metrics.CountRequest(of_worker ? Route::kWorkerReady : Route::kOwn, answer->status);
  auto responding = connection.Respond(*answer);
  co_await responding;
}

Task<void> AdminHandler::Handle(ServerConnection& connection) {
  const std::string_view path = RequestTarget::Of(connection.head().target).path;
  auto serving = pages_.Serve(connection, path);
  co_await serving;
}

Answer AdminHandler::Refuse(const RequestProblem& problem) {
  return OpenAiError(problem.status, "bad_request", problem.what);
}

}  // namespace fathom
