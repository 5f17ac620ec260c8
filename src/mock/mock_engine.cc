#include "mock/mock_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include "base/text.h"
#include "mock/pages.h"

namespace fathom {
namespace {

constexpr uint64_t kBurst = 64;  // tokens that are overdue leave together, but others get a turn
constexpr size_t kPiece = 64 << 10;
constexpr std::string_view kBusy =
    "The engine is currently busy and cannot accept the request. Please retry later or send it to "
    "a different instance.";

int64_t UnixTime() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string HttpDate() {
  const time_t now = std::time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[40];
  const size_t size = std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text, size};
}

std::string_view PathOf(std::string_view target) { return target.substr(0, target.find('?')); }

Answer JsonAnswer(int status, std::string body) {
  return {.status = status, .body = std::move(body)};
}

Answer ErrorAnswer(int status, std::string_view type, std::string_view message,
                   std::string_view param = {}) {
  return JsonAnswer(status, ErrorBody(message, type, param, status));
}

// What came in, sent back so that a test can see it. Header values hold no line breaks.
std::vector<std::pair<std::string, std::string>> Reflections(const RequestHead& head) {
  std::vector<std::pair<std::string, std::string>> out = {{"date", HttpDate()},
                                                          {"server", "uvicorn"}};
  if (const Header* id = head.headers.Find(HeaderName::kRequestId)) {
    out.emplace_back("x-mock-request-id", id->value);
  }
  if (const Header* trace = head.headers.Find("traceparent")) {
    out.emplace_back("x-mock-traceparent", trace->value);
  }
  return out;
}

// Filler for answers of any length.
std::string_view Block() {
  static const std::string block = [] {
    std::string text;
    while (text.size() < kPiece) text += "0123456789abcdef";
    return text;
  }();
  return block;
}

}  // namespace

MockEngine::MockEngine(Loop& loop, const MockOptions& options, MockCounts& counts)
    : loop_(loop),
      options_(options),
      counts_(counts),
      speaker_(options.name, options.chunk_bytes),
      dice_(options.seed) {}

void MockEngine::Rename(const std::string& name) {
  options_.name = name;
  speaker_ = Speaker(name, options_.chunk_bytes);
}

void MockEngine::BreakOff() {
  const std::vector<Presence*> present(present_.begin(), present_.end());
  for (Presence* presence : present) {
    if (present_.contains(presence)) presence->End();
  }
}

Answer MockEngine::Refuse(const RequestProblem& problem) {
  return ErrorAnswer(problem.status, "BadRequestError", problem.what);
}

Task<void> MockEngine::Handle(ServerConnection& connection) {
  const RequestHead& head = connection.head();
  const std::string_view path = PathOf(head.target);
  if (head.method == "POST" && path.starts_with("/v1/")) {
    auto serving = ServePost(connection, path);
    co_await serving;
    co_return;
  }
  const Answer answer = Page(head, path);
  auto responding = connection.Respond(answer);
  co_await responding;
}

Answer MockEngine::Page(const RequestHead& head, std::string_view path) const {
  const bool get = head.method == "GET" || head.method == "HEAD";
  if (path.starts_with("/v1/") && !Authorized(head))
    return JsonAnswer(401, R"({"error":"Unauthorized"})");
  if (path == "/health") return get ? Answer{.content_type = ""} : JsonAnswer(405, "{}");
  if (get && path == "/v1/models") return JsonAnswer(200, ModelsPage(options_, UnixTime()));
  if (get && path == "/version") return JsonAnswer(200, VersionPage(options_.engine));
  if (get && path == "/mock/stats") return JsonAnswer(200, StatsPage(counts_));
  return JsonAnswer(404, R"({"detail":"Not Found"})");
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
  const auto add = [](std::atomic<uint64_t>& n) { n.fetch_add(1, std::memory_order_relaxed); };
  switch (outcome) {
    case Outcome::kCompleted:
      add(counts_.completed);
      break;
    case Outcome::kFailed:
      add(counts_.failed);
      break;
    case Outcome::kCancelled:
      add(counts_.cancelled);
      break;
  }
  counts_.in_flight.fetch_sub(1, std::memory_order_relaxed);
}

Task<void> MockEngine::ServePost(ServerConnection& connection, std::string_view path) {
  counts_.requests.fetch_add(1, std::memory_order_relaxed);
  counts_.in_flight.fetch_add(1, std::memory_order_relaxed);
  Presence presence(connection.socket());
  present_.insert(&presence);
  auto answering = ReadAndAnswer(connection, presence, path);
  const Outcome outcome = co_await answering;
  present_.erase(&presence);
  if (outcome == Outcome::kCancelled) connection.CloseAfterwards();
  Count(outcome);
}

Task<MockEngine::Outcome> MockEngine::ReadAndAnswer(ServerConnection& connection,
                                                    Presence& presence, std::string_view path) {
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

Task<MockEngine::Outcome> MockEngine::AnswerModelCall(Visit& visit) {
  const Fate fate = Draw();
  if (fate == Fate::kHang) {
    co_await visit.presence.Until(kNever);
    co_return Outcome::kCancelled;
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
  } else {
    const bool stream = visit.request.stream && visit.path != "/v1/responses";
    const bool at_length = visit.request.answer_bytes && visit.path != "/v1/responses";
    auto answering = stream      ? AnswerStream(visit)
                     : at_length ? AnswerAtLength(visit)
                                 : AnswerWhole(visit);
    const Outcome outcome = co_await answering;
    co_return outcome;
  }
  auto finishing = Finish(visit, std::move(answer));
  const Outcome outcome = co_await finishing;
  co_return outcome;
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
  if (options_.drain_abort) {
    visit.tokens = 0;
    visit.finish_reason = "abort";
  }
  return {};
}

bool MockEngine::Serves(std::string_view model) const {
  return std::ranges::find(options_.models, model) != options_.models.end();
}

std::string MockEngine::MakeId(std::string_view prefix, const RequestHead& head) {
  const Header* given = head.headers.Find(HeaderName::kRequestId);
  if (given != nullptr) return fmt::format("{}{}", prefix, given->value);
  return fmt::format("{}{:016x}", prefix, dice_.Next());
}

// From the beginning of the request, so that pauses do not add up their lateness.
TimePoint MockEngine::Due(const Visit& visit, uint64_t token) const {
  if (options_.drain_abort) return visit.started;
  return visit.started + options_.first_token_delay +
         static_cast<int64_t>(token) * options_.token_interval;
}

bool MockEngine::DiesWithin(const Visit& visit) const {
  return options_.die_after_tokens > 0 && options_.die_after_tokens < visit.tokens;
}

MockEngine::Outcome MockEngine::Die(Visit& visit) {
  visit.connection.socket().ResetOnClose();
  visit.connection.CloseAfterwards();
  return Outcome::kFailed;
}

Task<MockEngine::Outcome> MockEngine::Finish(Visit& visit, Answer answer) {
  answer.headers = Reflections(visit.connection.head());
  auto responding = visit.connection.Respond(answer);
  const bool sent = co_await responding;
  if (!sent) co_return Outcome::kCancelled;
  co_return answer.status == 200 ? Outcome::kCompleted : Outcome::kFailed;
}

Task<MockEngine::Outcome> MockEngine::AnswerWhole(Visit& visit) {
  const bool dies = DiesWithin(visit);
  const bool stalls = visit.request.stall_after && *visit.request.stall_after < visit.tokens;
  const uint64_t last = dies ? options_.die_after_tokens : visit.tokens;
  const TimePoint until = stalls ? kNever : Due(visit, last > 0 ? last - 1 : 0);
  const bool present = co_await visit.presence.Until(until);
  if (!present) co_return Outcome::kCancelled;
  if (dies) co_return Die(visit);
  const std::string text = speaker_.Tokens(visit.tokens);
  std::string body;
  if (visit.path == "/v1/responses") {
    body = ResponsePage(visit.identity, visit.request, text, visit.tokens);
  } else {
    const AnswerEnvelope envelope = MakeEnvelope(visit.identity, visit.finish_reason,
                                                 visit.request.prompt_tokens, visit.tokens);
    body = envelope.before + text + envelope.after;
  }
  auto finishing = Finish(visit, JsonAnswer(200, std::move(body)));
  const Outcome outcome = co_await finishing;
  co_return outcome;
}

void MockEngine::AppendHead(std::string& out, const Visit& visit,
                            std::string_view content_type) const {
  out += "HTTP/1.1 200 OK\r\n";
  for (const auto& [name, value] : Reflections(visit.connection.head())) {
    out.append(name).append(": ").append(value).append("\r\n");
  }
  out.append("content-type: ").append(content_type).append("\r\n");
  if (!visit.connection.keep_alive()) out += "connection: close\r\n";
}

// Writes mock_answer_bytes of text without ever holding them.
Task<MockEngine::Outcome> MockEngine::AnswerAtLength(Visit& visit) {
  ServerConnection& connection = visit.connection;
  uint64_t left = *visit.request.answer_bytes;
  const AnswerEnvelope envelope =
      MakeEnvelope(visit.identity, visit.finish_reason, visit.request.prompt_tokens, visit.tokens);
  std::string out;
  AppendHead(out, visit, "application/json");
  fmt::format_to(std::back_inserter(out), "content-length: {}\r\n\r\n{}",
                 envelope.before.size() + left + envelope.after.size(), envelope.before);
  connection.MarkAnswered();
  IoResult written = co_await connection.socket().Write(out, connection.WriteDeadline());
  while (written.ok() && left > 0) {
    const std::string_view piece = Block().substr(0, left);
    left -= piece.size();
    written = co_await connection.socket().Write(piece, connection.WriteDeadline());
  }
  if (written.ok()) {
    written = co_await connection.socket().Write(envelope.after, connection.WriteDeadline());
  }
  co_return written.ok() ? Outcome::kCompleted : Outcome::kCancelled;
}

Task<MockEngine::Outcome> MockEngine::AnswerStream(Visit& visit) {
  ServerConnection& connection = visit.connection;
  Socket& socket = connection.socket();
  StreamFrames frames(visit.identity, speaker_);
  std::string head;
  AppendHead(head, visit, "text/event-stream; charset=utf-8");
  head += "transfer-encoding: chunked\r\n\r\n";
  connection.MarkAnswered();
  IoResult written = co_await socket.Write(head, connection.WriteDeadline());
  if (!written.ok()) co_return Outcome::kCancelled;

  auto streaming = StreamTokens(visit, frames);
  const Outcome outcome = co_await streaming;
  if (outcome != Outcome::kCompleted) co_return outcome;

  if (visit.request.include_usage) {
    const std::string_view usage = frames.Usage(visit.request.prompt_tokens, visit.tokens);
    written = co_await socket.Write(usage, connection.WriteDeadline());
    if (!written.ok()) co_return Outcome::kCancelled;
  }
  written = co_await socket.Write(frames.Done(), connection.WriteDeadline());
  co_return written.ok() ? Outcome::kCompleted : Outcome::kCancelled;
}

// The events with text in them, from the role to the finish_reason.
Task<MockEngine::Outcome> MockEngine::StreamTokens(Visit& visit, StreamFrames& frames) {
  ServerConnection& connection = visit.connection;
  Socket& socket = connection.socket();
  const uint64_t die_at = DiesWithin(visit) ? options_.die_after_tokens : visit.tokens;
  const uint64_t stall_at = visit.request.stall_after.value_or(visit.tokens);
  for (uint64_t i = 0;; ++i) {
    if (i == die_at && die_at < visit.tokens) co_return Die(visit);
    const TimePoint due = i == stall_at && stall_at < visit.tokens ? kNever : Due(visit, i);
    if (due > loop_.now() || (i > 0 && i % kBurst == 0)) {
      const bool present = co_await visit.presence.Until(due);
      if (!present) co_return Outcome::kCancelled;
    }
    if (i == 0 && visit.identity.chat) {
      const IoResult begun = co_await socket.Write(frames.Role(), connection.WriteDeadline());
      if (!begun.ok()) co_return Outcome::kCancelled;
    }
    const bool last = i + 1 >= visit.tokens;
    const std::string_view frame = visit.tokens == 0 ? frames.Nothing(visit.finish_reason)
                                   : last            ? frames.LastToken(i, visit.finish_reason)
                                                     : frames.Token(i);
    const IoResult written = co_await socket.Write(frame, connection.WriteDeadline());
    if (!written.ok()) co_return Outcome::kCancelled;
    if (last) co_return Outcome::kCompleted;
  }
}

}  // namespace fathom
