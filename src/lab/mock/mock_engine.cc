#include "lab/mock/mock_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/text.h"
#include "lab/mock/fault_page.h"
#include "lab/mock/pages.h"
#include "lab/mock/prompt.h"

namespace fathom {
namespace {

constexpr std::string_view kBusy =
    "The engine is currently busy and cannot accept the request. Please retry later or send it to "
    "a different instance.";

int64_t UnixTime() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string_view PathOf(std::string_view target) { return target.substr(0, target.find('?')); }

bool IsPost(const RequestHead& head) { return head.method == "POST"; }

// On any path that some engine has for it.
bool AsksForTokens(const RequestHead& head, std::string_view path) {
  return IsPost(head) && (path.ends_with("tokenize") || path.ends_with("/render"));
}

void Add(std::atomic<uint64_t>& n) { n.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

MockEngine::MockEngine(Loop& loop, const MockOptions& options, MockCounts& counts,
                       EngineRanks* ranks)
    : loop_(loop),
      options_(options),
      counts_(counts),
      ranks_(ranks),
      paced_(loop, options_),
      ready_at_(loop.now() + options.slow_start),
      dice_(options.seed) {
  if (ranks_ != nullptr) simulated_.emplace(*ranks_, options_);
}

void MockEngine::Rename(const std::string& name) {
  options_.name = name;
  paced_.Rename();
}

void MockEngine::BreakOff() {
  const std::vector<Presence*> present(present_.begin(), present_.end());
  for (Presence* presence : present) {
    if (present_.contains(presence)) presence->End();
  }
}

void MockEngine::AbortRunning() {
  AbortNew();
  options_.abort_running = true;
  const std::vector<Presence*> present(present_.begin(), present_.end());
  for (Presence* presence : present) {
    if (present_.contains(presence)) presence->OnTokens();
  }
}

void MockEngine::Silence() {
  paced_.Silence();
  if (ranks_ != nullptr) ranks_->Freeze();
}

Task<void> MockEngine::Handle(ServerConnection& connection) {
  const RequestHead& head = connection.head();
  const std::string_view path = PathOf(head.target);
  if (AsksForTokens(head, path)) Add(counts_.tokenize_calls);
  const bool probe = path == "/health_generate" && options_.engine != MockedEngine::kVllm;
  auto serving = IsPost(head) && path.starts_with("/v1/") && !HasPostPage(path)
                     ? ServePost(connection, path)
                 : probe ? ServeProbe(connection)
                         : ServePage(connection, path);
  co_await serving;
}

// The only page under /v1/ that is asked for with POST.
bool MockEngine::HasPostPage(std::string_view path) const {
  return path == "/v1/tokenize" && options_.engine == MockedEngine::kSglang;
}

Task<void> MockEngine::ServePage(ServerConnection& connection, std::string_view path) {
  const RequestHead& head = connection.head();
  PageRequest request{
      .method = head.method == "HEAD" ? "GET" : head.method, .path = path, .body = {}};
  std::optional<Answer> answer;
  if (path.starts_with("/v1/") && !Authorized(head)) {
    answer = JsonAnswer(401, R"({"error":"Unauthorized"})");
  } else if (IsPost(head)) {
    auto reading = connection.ReadBody();
    const auto body = co_await reading;
    if (!body && body.error().status == 0) co_return;
    if (!body) answer = Refuse(body.error());
    if (body) request.body = *body;
  }
  const bool late = AsksForTokens(head, path) && counts_.in_flight > 0;
  const Duration delay = IsReport(request) ? options_.report_delay
                         : late            ? options_.tokenize_delay
                                           : Duration{};
  if (delay > Duration{}) {
    auto lingering = Linger(connection, delay);
    const bool present = co_await lingering;
    if (!present) co_return;
  }
  if (!answer) answer = CommonPage(request);
  if (!answer && request.Is("POST", "/mock/faults")) answer = ChangeFaults(request.body);
  if (!answer) answer = FacePage(request);
  if (!answer) answer = JsonAnswer(404, R"({"detail":"Not Found"})");
  auto responding = connection.Respond(*answer);
  co_await responding;
}

Task<bool> MockEngine::Linger(ServerConnection& connection, Duration time) {
  Presence presence(connection.socket());
  present_.insert(&presence);
  const bool present = co_await presence.Until(loop_.now() + time);
  present_.erase(&presence);
  co_return present;
}

// A health check that goes through the engine.
Task<void> MockEngine::ServeProbe(ServerConnection& connection) {
  if (simulated_ && loop_.now() >= ready_at_) {
    Presence presence(connection.socket());
    present_.insert(&presence);
    auto probing = simulated_->Probe(presence);
    const bool present = co_await probing;
    present_.erase(&presence);
    if (!present) co_return;
  }
  const Answer answer = HealthPage();
  auto responding = connection.Respond(answer);
  co_await responding;
}

Answer MockEngine::HealthPage() const {
  Answer answer;
  answer.status = loop_.now() < ready_at_ ? 503 : 200;
  answer.content_type.clear();
  return answer;
}

std::optional<Answer> MockEngine::CommonPage(const PageRequest& request) const {
  if (request.path == "/health") {
    return request.method == "GET" ? HealthPage() : JsonAnswer(405, "{}");
  }
  if (request.Is("GET", "/mock/faults")) return JsonAnswer(200, FaultsPage(options_));
  if (request.Is("GET", "/v1/models")) return JsonAnswer(200, ModelsPage(options_, UnixTime()));
  if (request.Is("GET", "/version")) return JsonAnswer(200, VersionPage(options_.engine));
  if (request.Is("GET", "/mock/stats")) {
    return JsonAnswer(200, StatsPage(counts_, ranks_, options_.ledger.get()));
  }
  return std::nullopt;
}

Answer MockEngine::ChangeFaults(std::string_view body) {
  if (const auto adopted = AdoptFaults(body); !adopted) {
    return ErrorAnswer(400, "BadRequestError", adopted.error().what);
  }
  if (on_faults_) on_faults_(body);
  return JsonAnswer(200, FaultsPage(options_));
}

Result<void> MockEngine::AdoptFaults(std::string_view body) {
  TRY(options_, WithFaults(options_, body));
  if (ranks_ != nullptr) ranks_->Adopt(options_);
  return {};
}

std::optional<Answer> MockEngine::FacePage(const PageRequest& request) {
  switch (options_.engine) {
    case MockedEngine::kVllm:
      return VllmPage(request, options_, ranks_);
    case MockedEngine::kSglang:
      return SglangPage(request, options_, ranks_);
    case MockedEngine::kTrtllm:
      return TrtllmPage(request, options_, ranks_);
  }
  return std::nullopt;
}

Answer MockEngine::Refuse(const RequestProblem& problem) {
  return ErrorAnswer(problem.status, "BadRequestError", problem.what);
}

bool MockEngine::Authorized(const RequestHead& head) const {
  if (options_.api_key.empty()) return true;
  const Header* given = head.headers.Find(HeaderName::kAuthorization);
  return given != nullptr &&
         EqualsInConstantTime(given->value, fmt::format("Bearer {}", options_.api_key));
}

MockEngine::Fate MockEngine::Draw() {
  if (options_.fail_rate > 0 && dice_.Unit() < options_.fail_rate) return Fate::kFail;
  if (options_.hang_rate > 0 && dice_.Unit() < options_.hang_rate) return Fate::kHang;
  return Fate::kFine;
}

void MockEngine::Count(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCompleted:
      Add(counts_.completed);
      break;
    case Outcome::kFailed:
      Add(counts_.failed);
      break;
    case Outcome::kCancelled:
      Add(counts_.cancelled);
      break;
  }
  counts_.in_flight.fetch_sub(1, std::memory_order_relaxed);
}

Task<void> MockEngine::ServePost(ServerConnection& connection, std::string_view path) {
  Add(counts_.requests);
  Add(counts_.in_flight);
  Presence presence(connection.socket());
  present_.insert(&presence);
  auto answering = ReadAndAnswer(connection, presence, path);
  const Outcome outcome = co_await answering;
  present_.erase(&presence);
  if (outcome == Outcome::kCancelled) connection.CloseAfterwards();
  Count(outcome);
}

Task<Outcome> MockEngine::ReadAndAnswer(ServerConnection& connection, Presence& presence,
                                        std::string_view path) {
  Visit visit{.connection = connection, .presence = presence, .path = path};
  visit.started = loop_.now();
  auto reading = connection.ReadBody();
  const auto body = co_await reading;
  if (!body && body.error().status == 0) co_return Outcome::kCancelled;
  Answer answer;
  if (!body) {
    answer = Refuse(body.error());
  } else if (!Authorized(connection.head())) {
    answer = JsonAnswer(401, R"({"error":"Unauthorized"})");
  } else if (options_.busy) {
    answer = ErrorAnswer(503, "ServiceUnavailableError", kBusy);
  } else {
    visit.body = *body;
    auto answering = AnswerModelCall(visit);
    const Outcome outcome = co_await answering;
    co_return outcome;
  }
  auto finishing = Finish(visit, std::move(answer));
  const Outcome outcome = co_await finishing;
  co_return outcome;
}

Task<Outcome> MockEngine::AnswerModelCall(Visit& visit) {
  const Fate fate = Draw();
  if (fate == Fate::kHang) {
    auto hanging = FallSilent(visit);
    const Outcome outcome = co_await hanging;
    co_return outcome;
  }
  Answer answer;
  if (fate == Fate::kFail) {
    answer = ErrorAnswer(500, "InternalServerError", "mock failure");
  } else if (visit.path != "/v1/chat/completions" && visit.path != "/v1/completions" &&
             visit.path != "/v1/responses" && visit.path != "/v1/embeddings") {
    answer = JsonAnswer(200, EchoPage(visit.path, visit.body));
  } else if (const auto prepared = Prepare(visit); !prepared) {
    answer = ErrorAnswer(400, "BadRequestError", prepared.error().what);
  } else if (!Serves(visit.identity.model)) {
    answer =
        ErrorAnswer(404, "NotFoundError",
                    fmt::format("The model `{}` does not exist.", visit.identity.model), "model");
  } else if (visit.path == "/v1/embeddings") {
    answer = JsonAnswer(200, EmbeddingsPage(visit.identity, visit.request));
  } else if (const auto read = ReadPrompts(visit); !read) {
    answer = ErrorAnswer(400, "BadRequestError", read.error().what);
  } else {
    auto generating = Generate(visit);
    const Outcome outcome = co_await generating;
    co_return outcome;
  }
  auto finishing = Finish(visit, std::move(answer));
  const Outcome outcome = co_await finishing;
  co_return outcome;
}

Task<Outcome> MockEngine::Generate(Visit& visit) {
  auto answering = Simulates(visit) ? simulated_->Serve(visit) : paced_.Serve(visit);
  const Outcome outcome = co_await answering;
  co_return outcome;
}

// What has no tokens, or none of an engine's, needs no engine.
bool MockEngine::Simulates(const Visit& visit) const {
  return simulated_ && !visit.aborted && !visit.request.answer_bytes &&
         visit.path != "/v1/responses";
}

// Fills in what follows from the body.
Result<void> MockEngine::Prepare(Visit& visit) {
  TRY(visit.request, ParseCompletionRequest(visit.body));
  const RequestHead& head = visit.connection.head();
  visit.identity.chat = visit.path == "/v1/chat/completions";
  visit.identity.id = MakeId(visit.identity.chat               ? "chatcmpl-"
                             : visit.path == "/v1/completions" ? "cmpl-"
                             : visit.path == "/v1/embeddings"  ? "embd-"
                                                               : "resp_",
                             head);
  visit.identity.created = UnixTime();
  visit.identity.model = visit.request.model.empty() && !options_.models.empty()
                             ? options_.models.front()
                             : visit.request.model;
  visit.tokens = visit.request.max_tokens.value_or(options_.tokens);
  visit.finish_reason = visit.request.max_tokens ? "length" : "stop";
  if (options_.abort_after_tokens > 0 && options_.abort_after_tokens < visit.tokens) {
    visit.tokens = options_.abort_after_tokens;
    visit.finish_reason = "abort";
  }
  visit.aborted = options_.drain_abort;
  if (visit.aborted) {
    visit.tokens = 0;
    visit.finish_reason = "abort";
  }
  return {};
}

Result<void> MockEngine::ReadPrompts(Visit& visit) {
  const bool chat = visit.identity.chat;
  if (!chat && visit.path != "/v1/completions") return {};
  const PromptForm form = FormOf(visit.request, chat, options_.engine);
  switch (form) {
    case PromptForm::kIds:
      Add(counts_.ids_prompts);
      break;
    case PromptForm::kText:
      Add(counts_.text_prompts);
      break;
    case PromptForm::kChat:
      Add(counts_.chat_prompts);
      break;
  }
  if (!Simulates(visit) && options_.language_model == nullptr) return {};
  TRY(visit.prompts, PromptsOf(visit.request, chat, options_));
  if (form != PromptForm::kIds) {
    for (auto& prompt : visit.prompts) {
      Distort(prompt, options_.prompt_fault, options_.language_model.get());
    }
  }
  visit.request.prompt_tokens = 0;
  for (const auto& prompt : visit.prompts) visit.request.prompt_tokens += prompt.size();
  return {};
}

bool MockEngine::Serves(std::string_view model) const {
  return std::ranges::find(options_.models, model) != options_.models.end() ||
         IsAdapter(options_, model);
}

std::string MockEngine::MakeId(std::string_view prefix, const RequestHead& head) {
  const Header* given = head.headers.Find(HeaderName::kRequestId);
  if (given != nullptr) return fmt::format("{}{}", prefix, given->value);
  return fmt::format("{}{:016x}", prefix, dice_.Next());
}

}  // namespace fathom
