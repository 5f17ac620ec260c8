#include "lab/load/playback.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "codec/json.h"
#include "codec/sse.h"
#include "io/client/answer_reader.h"
#include "io/http/fetch.h"
#include "lab/load/fine_alarm.h"

namespace fathom {
namespace {

constexpr WorkerId kEndpoint{0};  // the pool's only one
constexpr size_t kMostIdle = 1024;
constexpr Duration kIdleTimeout = std::chrono::seconds(4);  // less than what servers have

std::string TokenList(const std::vector<uint32_t>& ids) {
  std::string out = "[";
  for (const uint32_t id : ids) {
    if (out.size() > 1) out += ',';
    const fmt::format_int text(id);
    out.append(text.data(), text.size());
  }
  return out += ']';
}

std::string Body(const PlaybackOptions& options, const PlaybackRequest& request) {
  JsonWriter w;
  w.BeginObject().Key("model").String(options.model);
  w.Key("prompt").Raw(TokenList(request.prompt));
  w.Key("max_tokens").Unsigned(request.max_tokens).Key("stream").Bool(true);
  w.Key("stream_options").BeginObject().Key("include_usage").Bool(true).EndObject().EndObject();
  return w.Take();
}

}  // namespace

std::string BuildPlaybackRequest(const PlaybackOptions& options, const PlaybackRequest& request) {
  const std::string body = Body(options, request);
  std::string out;
  AppendRequestHead(out, "POST", options.endpoint.url, "/v1/completions");
  if (!options.api_key.empty()) out += fmt::format("authorization: Bearer {}\r\n", options.api_key);
  out += fmt::format("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.size());
  return out += body;
}

uint64_t PlaybackReport::error_count() const {
  uint64_t sum = 0;
  for (const auto& [status, count] : errors) sum += count;
  return sum;
}

// One request and its answer as it comes in.
struct Playback::Exchange {
  std::string request;
  TimePoint due;
  TimePoint deadline;
  std::unique_ptr<ClientConnection> connection;
  int status = 0;
  TimePoint first_byte{};
  std::optional<uint64_t> announced;  // tokens, by the router's header
  SseReader events;
  std::string last_event;  // before [DONE]: the usage, or what went wrong
  bool done = false;       // [DONE] was seen

  void TakeHead(const ResponseHead& head);
  void TakePiece(std::string_view piece);
  // Of a stream that is over; an error if it did not end as it should.
  Result<AnswerUsage> Usage() const;
};

void Playback::Exchange::TakeHead(const ResponseHead& head) {
  status = head.status;
  const Header* const header = head.headers.Find("x-fathom-cached-tokens");
  if (header == nullptr) return;
  uint64_t tokens = 0;
  const char* const end = header->value.data() + header->value.size();
  if (std::from_chars(header->value.data(), end, tokens).ptr == end) announced = tokens;
}

void Playback::Exchange::TakePiece(std::string_view piece) {
  events.Feed(piece);
  while (const auto data = events.Next()) {
    done = *data == "[DONE]";
    if (!done) last_event = *data;
  }
}

Result<AnswerUsage> Playback::Exchange::Usage() const {
  const auto event = Json::Parse(last_event);
  if (event && event->Find("error") != nullptr) return Fail(Blame::kPeer, "an error event");
  if (!done) return Fail(Blame::kPeer, "the stream ended without [DONE]");
  if (!event) return Fail(Blame::kPeer, "an event that is not JSON");
  return UsageOf(*event);
}

Playback::Playback(Loop& loop, Resolver& resolver, PlaybackOptions options,
                   std::vector<PlaybackRequest> requests)
    : loop_(loop),
      resolver_(resolver),
      options_(std::move(options)),
      requests_(std::move(requests)),
      pool_(loop, kMostIdle, kIdleTimeout) {
  CHECK(std::ranges::is_sorted(requests_, {}, &PlaybackRequest::at));
}

Task<void> Playback::Run() {
  const TimePoint begun = loop_.now();
  FineAlarm alarm(loop_);
  std::vector<Task<void>> playing;
  playing.reserve(requests_.size());
  for (PlaybackRequest& request : requests_) {
    // Before it is due, so that a long prompt does not make it late.
    std::string text = BuildPlaybackRequest(options_, request);
    request.prompt = {};
    const TimePoint due = begun + request.at;
    co_await alarm.Until(due);
    playing.push_back(Play(std::move(text), due));
  }
  for (Task<void>& play : playing) co_await play;
  pool_.Drop(kEndpoint);
  report_.seconds = Seconds(loop_.now() - begun);
}

Task<void> Playback::Play(std::string request, TimePoint due) {
  Exchange exchange{.request = std::move(request), .due = due};
  exchange.deadline = loop_.now() + options_.timeout;
  ++report_.started;
  // The loop's time stands still while several that are due together are sent.
  report_.lag.Record(std::chrono::steady_clock::now() - due);
  auto asking = Ask(exchange);
  const auto asked = co_await asking;
  if (!asked) {
    RecordProblem(asked.error());
    co_return;
  }
  Record(exchange);
  const bool reusable = exchange.connection->Reusable();
  if (reusable) pool_.Put(kEndpoint, std::move(exchange.connection));
}

Task<Result<void>> Playback::Ask(Exchange& exchange) {
  exchange.connection = pool_.Take(kEndpoint);
  if (exchange.connection) {
    auto trying = Converse(exchange);
    auto tried = co_await trying;
    // A server may close a connection that rests at any time; who meets that asks again.
    const bool again = !tried && !exchange.connection->answer_started();
    if (!again || loop_.now() >= exchange.deadline) co_return tried;
  }
  auto connecting = Connect(exchange);
  auto connected = co_await connecting;
  if (!connected) co_return connected;
  auto conversing = Converse(exchange);
  auto conversed = co_await conversing;
  co_return conversed;
}

Task<Result<void>> Playback::Connect(Exchange& exchange) {
  exchange.connection = std::make_unique<ClientConnection>(loop_);
  auto opening = exchange.connection->Open(options_.endpoint, resolver_, exchange.deadline);
  auto opened = co_await opening;
  co_return opened;
}

Task<Result<void>> Playback::Converse(Exchange& exchange) {
  auto sending = SendRequest(*exchange.connection, exchange.request, exchange.deadline);
  auto sent = co_await sending;
  if (!sent) co_return sent;
  AnswerReader answer(*exchange.connection, exchange.deadline);
  while (!answer.over()) {
    auto reading = answer.Read();
    auto read = co_await reading;
    if (!read) co_return read;
    if (exchange.status == 0) exchange.TakeHead(answer.head());
    exchange.request.clear();  // nobody asks again now
    const bool first = exchange.first_byte == TimePoint() && !answer.pieces().empty();
    if (first) exchange.first_byte = loop_.now();
    for (const std::string_view piece : answer.pieces()) exchange.TakePiece(piece);
  }
  co_return Result<void>();
}

void Playback::Record(const Exchange& exchange) {
  if (exchange.status != 200) {
    ++report_.errors[exchange.status];
    return;
  }
  const auto usage = exchange.Usage();
  if (!usage) return RecordProblem(usage.error());
  ++report_.completed;
  report_.prompt_tokens += usage->prompt_tokens;
  report_.cached_tokens += usage->cached_tokens;
  report_.completion_tokens += usage->completion_tokens;
  if (exchange.announced) ++report_.announced;
  report_.announced_cached_tokens += exchange.announced.value_or(0);
  report_.first_byte.Record(exchange.first_byte - exchange.due);
  report_.total.Record(loop_.now() - exchange.due);
}

void Playback::RecordProblem(const Error& error) {
  ++report_.errors[0];
  if (report_.first_problem.empty()) report_.first_problem = error.what;
}

}  // namespace fathom
