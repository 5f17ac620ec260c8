#include "lab/load/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "codec/json.h"
#include "io/client/answer_reader.h"
#include "io/http/fetch.h"

namespace fathom {
namespace {

constexpr Duration kPauseAfterProblem = std::chrono::milliseconds(20);
constexpr size_t kTail = 512;  // of an answer, where its usage stands

std::string Prompt(size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += "the quick brown fox jumps over the lazy dog ";
  text.resize(bytes);
  return text;
}

std::string LoadBody(const LoadOptions& options) {
  JsonWriter w;
  w.BeginObject().Key("model").String(options.model);
  if (options.path.ends_with("/chat/completions")) {
    w.Key("messages").BeginArray().BeginObject().Key("role").String("user");
    w.Key("content").String(Prompt(options.prompt_bytes)).EndObject().EndArray();
  } else {
    const bool completion = options.path.ends_with("/completions");
    w.Key(completion ? "prompt" : "input").String(Prompt(options.prompt_bytes));
  }
  w.Key("max_tokens").Unsigned(options.max_tokens).Key("stream").Bool(options.stream);
  if (options.stream) {
    w.Key("stream_options").BeginObject().Key("include_usage").Bool(true).EndObject();
  }
  w.EndObject();
  return w.Take();
}

}  // namespace

std::string BuildLoadRequest(const LoadOptions& options) {
  const std::string body = LoadBody(options);
  std::string out;
  AppendRequestHead(out, "POST", options.endpoint.url, options.path);
  if (!options.api_key.empty()) out += fmt::format("authorization: Bearer {}\r\n", options.api_key);
  if (!options.keep_alive) out += "connection: close\r\n";
  out += fmt::format("content-type: application/json\r\ncontent-length: {}\r\n\r\n{}", body.size(),
                     body);
  return out;
}

uint64_t CompletionTokens(std::string_view tail) {
  constexpr std::string_view kKey = "\"completion_tokens\":";
  const size_t at = tail.rfind(kKey);
  if (at == std::string_view::npos) return 0;
  std::string_view number = tail.substr(at + kKey.size());
  while (number.starts_with(' ')) number.remove_prefix(1);
  uint64_t tokens = 0;
  std::from_chars(number.data(), number.data() + number.size(), tokens);
  return tokens;
}

uint64_t LoadReport::error_count() const {
  uint64_t sum = 0;
  for (const auto& [status, count] : errors) sum += count;
  return sum;
}

// Waits until there is a request to send; nothing when there will be no more.
struct LoadGenerator::Turn {
  LoadGenerator& generator;
  std::optional<TimePoint> due;
  std::coroutine_handle<> waiting;

  bool await_ready() {
    due = generator.TakeTurn();
    return due || generator.over_;
  }
  void await_suspend(std::coroutine_handle<> handle) {
    waiting = handle;
    generator.free_.push_back(this);
  }
  void await_resume() const {}
};

// One visitor's connection, and the request that it is busy with.
struct LoadGenerator::Exchange {
  std::unique_ptr<ClientConnection> connection;
  TimePoint due;
  TimePoint deadline;
  TimePoint last_arrival;
  int status = 0;
  bool complete = false;
  std::string problem;
  std::string tail;
};

LoadGenerator::LoadGenerator(Loop& loop, Resolver& resolver, const LoadOptions& options)
    : loop_(loop),
      resolver_(resolver),
      options_(options),
      request_(BuildLoadRequest(options)),
      random_(options.seed) {}

Task<void> LoadGenerator::Run() {
  begun_ = next_due_ = loop_.now();
  if (options_.duration > Duration::zero()) end_ = begun_ + options_.duration;
  std::vector<Task<void>> visitors;
  visitors.reserve(options_.concurrency);
  for (size_t i = 0; i < options_.concurrency; ++i) {
    visitors.push_back(Visit(options_.ramp * i / options_.concurrency));
  }
  if (options_.rate > 0 && !over_) {
    auto admitting = Admit();
    co_await admitting;
  }
  for (Task<void>& visitor : visitors) co_await visitor;
  report_.seconds = Seconds(loop_.now() - begun_);
  finished_ = true;
}

const LoadReport& LoadGenerator::report() {
  if (!finished_) report_.seconds = Seconds(loop_.now() - begun_);
  return report_;
}

void LoadGenerator::Stop() {
  if (std::exchange(over_, true)) return;
  if (alarm_) alarm_->Cancel();
  DropBacklog();
  const std::vector<Turn*> waiting = std::exchange(free_, {});
  for (Turn* turn : waiting) turn->waiting.resume();
}

void LoadGenerator::DropBacklog() {
  report_.unsent += backlog_.size();
  backlog_.clear();
}

bool LoadGenerator::MayStartMore() const {
  return !over_ && (options_.requests == 0 || admitted_ < options_.requests);
}

bool LoadGenerator::Timed(const Exchange& exchange) const {
  return exchange.due - begun_ >= options_.warmup;
}

std::optional<TimePoint> LoadGenerator::TakeTurn() {
  if (options_.rate > 0) {
    if (loop_.now() >= end_) DropBacklog();
    if (backlog_.empty()) return std::nullopt;
    const TimePoint due = backlog_.front();
    backlog_.pop_front();
    return due;
  }
  if (!MayStartMore() || loop_.now() >= end_) {
    over_ = true;
    return std::nullopt;
  }
  ++admitted_;
  return loop_.now();
}

Duration LoadGenerator::Gap() {
  const double mean = 1e9 / options_.rate;
  const double gap = options_.poisson ? -std::log1p(-random_.Unit()) * mean : mean;
  return Duration(static_cast<int64_t>(gap));
}

// Hands out requests as they become due, until there are no more.
Task<void> LoadGenerator::Admit() {
  alarm_.emplace(loop_);
  for (;;) {
    AdmitDue();
    if (!MayStartMore() || loop_.now() >= end_) break;
    co_await alarm_->Until(std::min(next_due_, end_));
  }
  alarm_.reset();
  if (loop_.now() >= end_ || backlog_.empty()) {
    Stop();
  } else {
    // The last have been admitted, and whoever becomes free takes from the backlog.
    over_ = true;
  }
}

void LoadGenerator::AdmitDue() {
  while (MayStartMore() && next_due_ <= loop_.now() && next_due_ < end_) {
    ++admitted_;
    const TimePoint due = std::exchange(next_due_, next_due_ + Gap());
    if (free_.empty()) {
      backlog_.push_back(due);
      continue;
    }
    Turn& turn = *free_.back();
    free_.pop_back();
    turn.due = due;
    turn.waiting.resume();
  }
}

Task<void> LoadGenerator::Visit(Duration pause) {
  Exchange exchange;
  if (pause > Duration::zero()) co_await loop_.Sleep(pause);
  for (;;) {
    Turn turn{*this, std::nullopt, nullptr};
    co_await turn;
    if (!turn.due) break;
    exchange.due = *turn.due;
    auto asking = Ask(exchange);
    co_await asking;
    Record(exchange);
    if (!exchange.complete && !over_) co_await loop_.Sleep(kPauseAfterProblem);
  }
}

Task<bool> LoadGenerator::Connect(Exchange& exchange) {
  exchange.connection = std::make_unique<ClientConnection>(loop_);
  ++report_.connections;
  auto opening = exchange.connection->Open(options_.endpoint, resolver_, exchange.deadline);
  const auto opened = co_await opening;
  if (!opened) {
    exchange.problem = opened.error().what;
    exchange.connection.reset();
  }
  co_return opened.has_value();
}

Task<void> LoadGenerator::Ask(Exchange& exchange) {
  ++report_.started;
  if (options_.rate > 0 && Timed(exchange)) report_.lag.Record(loop_.now() - exchange.due);
  exchange.deadline = loop_.now() + options_.timeout;
  exchange.last_arrival = TimePoint();
  exchange.status = 0;
  exchange.complete = false;
  for (bool reused = exchange.connection && exchange.connection->quiet();; reused = false) {
    exchange.problem.clear();
    exchange.tail.clear();
    if (!reused) {
      auto connecting = Connect(exchange);
      const bool connected = co_await connecting;
      if (!connected) co_return;
    }
    auto exchanging = Converse(exchange);
    const auto exchanged = co_await exchanging;
    if (!exchanged) exchange.problem = exchanged.error().what;
    const bool kept = exchange.complete && options_.keep_alive && exchange.connection->Reusable();
    // A server may close a connection that rests at any time; who meets that asks again.
    const bool again = reused && !exchange.complete && !exchange.connection->answer_started() &&
                       loop_.now() < exchange.deadline;
    if (!kept) exchange.connection.reset();
    if (!again) co_return;
  }
}

Task<Result<void>> LoadGenerator::Converse(Exchange& exchange) {
  auto sending = SendRequest(*exchange.connection, request_, exchange.deadline);
  auto sent = co_await sending;
  if (!sent) co_return sent;
  AnswerReader answer(*exchange.connection, exchange.deadline);
  while (!answer.over()) {
    auto reading = answer.Read();
    auto read = co_await reading;
    if (!read) co_return read;
    exchange.status = answer.head().status;
    for (const std::string_view piece : answer.pieces()) TakePayload(exchange, piece);
    if (!answer.pieces().empty()) RecordArrival(exchange);
  }
  exchange.complete = true;
  co_return Result<void>();
}

void LoadGenerator::RecordArrival(Exchange& exchange) {
  if (exchange.status != 200 || !Timed(exchange)) return;
  const bool first = exchange.last_arrival == TimePoint();
  if (first) report_.first_byte.Record(loop_.now() - exchange.due);
  if (!first) report_.between_chunks.Record(loop_.now() - exchange.last_arrival);
  exchange.last_arrival = loop_.now();
}

void LoadGenerator::TakePayload(Exchange& exchange, std::string_view payload) {
  report_.bytes += payload.size();
  if (options_.stream && payload.ends_with("\n\n")) ++report_.chunks;
  if (payload.size() >= kTail) {
    exchange.tail.assign(payload.substr(payload.size() - kTail));
    return;
  }
  if (exchange.tail.size() + payload.size() > 2 * kTail) {
    exchange.tail.erase(0, exchange.tail.size() - kTail);
  }
  exchange.tail.append(payload);
}

void LoadGenerator::Record(Exchange& exchange) {
  if (exchange.complete && exchange.status == 200) {
    ++report_.completed;
    report_.tokens += CompletionTokens(exchange.tail);
    if (Timed(exchange)) report_.total.Record(loop_.now() - exchange.due);
    return;
  }
  const int status = exchange.complete ? exchange.status : 0;
  ++report_.errors[status];
  if (status == 0 && report_.first_problem.empty()) report_.first_problem = exchange.problem;
}

namespace {

Task<void> RunThenStop(LoadGenerator& generator, Loop& loop) {
  auto running = generator.Run();
  co_await running;
  loop.Stop();
}

}  // namespace

LoadReport RunLoad(const LoadOptions& options) {
  Loop loop;
  Resolver resolver;
  LoadGenerator generator(loop, resolver, options);
  loop.Post([&] { Spawn(RunThenStop(generator, loop)); });
  loop.Run();
  return generator.report();
}

}  // namespace fathom
