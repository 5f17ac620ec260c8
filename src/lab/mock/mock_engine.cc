#include "lab/mock/mock_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/text.h"
#include "lab/mock/fault_page.h"
#include "lab/mock/pages.h"

namespace fathom {
namespace {

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

// The folder of what /v1/responses has answered.
constexpr std::string_view kResponseFolder = "/v1/responses/";

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
  if (path.starts_with(kResponseFolder)) Add(counts_.response_calls);
  const bool probe = path == "/health_generate" && options_.engine != MockedEngine::kVllm;
  auto serving = IsPost(head) && IsInference(path) && !HasPostPage(path)
                     ? ServePost(connection, path)
                 : probe ? ServeProbe(connection)
                         : ServePage(connection, path);
  co_await serving;
}

// Not a page. Some routes do not begin with /v1/.
bool MockEngine::IsInference(std::string_view path) const {
  static constexpr std::string_view kBare[] = {"/score", "/rerank", "/classify", "/pooling"};
  return path.starts_with("/v1/") || RouteOf(options_.engine, path) == MockRoute::kGenerate ||
         std::ranges::find(kBare, path) != std::end(kBare);
}

// The only pages under /v1/ that are asked for with POST.
bool MockEngine::HasPostPage(std::string_view path) const {
  const MockRoute route = RouteOf(options_.engine, path);
  return route == MockRoute::kTokenize || route == MockRoute::kDetokenize ||
         path.starts_with(kResponseFolder);
}

// There is none, or it wants another method.
Answer MockEngine::NoSuchPage(const PageRequest& request) const {
  if (RouteOf(options_.engine, request.path) != MockRoute::kOther) {
    return MethodNotAllowedAnswer("POST");
  }
  const std::string_view method = MethodOfPage(options_.engine, request.path);
  return method.empty() || method == request.method ? NotFoundAnswer()
                                                    : MethodNotAllowedAnswer(method);
}

Task<void> MockEngine::ServePage(ServerConnection& connection, std::string_view path) {
  const RequestHead& head = connection.head();
  const Header* const type = head.headers.Find(HeaderName::kContentType);
  PageRequest request{.method = head.method == "HEAD" ? "GET" : head.method,
                      .path = path,
                      .content_type = type != nullptr ? type->value : std::string_view(),
                      .body = {}};
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
  if (!answer) answer = StoredResponse(request);
  if (!answer) answer = NoSuchPage(request);
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
  if (request.Is("GET", "/health")) return HealthPage();
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

}  // namespace fathom
