#include "router/gateway/answer_relay.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "codec/sse.h"
#include "router/gateway/api_error.h"

namespace fathom {
namespace {

constexpr size_t kScreenedAnswer = 4096;     // an empty answer is short
constexpr size_t kMaxHeldEvent = 256 << 10;  // a longer event is sent in parts, as it arrives
// The same limit if usage is to be removed, and for agents' APIs, whose last event may have all of
// the answer and of the tools. A longer event is neither edited nor read: if it contains usage, the
// client sees it.
constexpr size_t kMaxFilteredEvent = 4 << 20;

bool IsEventStream(const ResponseHead& head) {
  constexpr std::string_view kType = "text/event-stream";
  const Header* const type = head.headers.Find(HeaderName::kContentType);
  return type != nullptr && EqualsIgnoreCase(type->value.substr(0, kType.size()), kType);
}

bool IsEncoded(const ResponseHead& head) {
  const Header* const coding = head.headers.Find("content-encoding");
  return coding != nullptr && !EqualsIgnoreCase(coding->value, "identity");
}

// Headers of an answer that the router writes itself.
bool IsOurs(HeaderName id) {
  switch (id) {
    case HeaderName::kContentLength:
    case HeaderName::kRequestId:
    case HeaderName::kFathomWorker:
    case HeaderName::kFathomDpRank:
    case HeaderName::kFathomCachedTokens:
      return true;
    default:
      return false;
  }
}

// How much memory it takes to hold the answer; nullopt: more than `most`, or nothing to hold.
std::optional<size_t> HeldSize(const ResponseHead& head, size_t most) {
  if (head.framing == BodyFraming::kNone) return std::nullopt;
  if (head.framing != BodyFraming::kLength) return most;
  if (head.content_length > most) return std::nullopt;
  return static_cast<size_t>(head.content_length);
}

bool EndsWithBlankLine(std::string_view text) {
  return text.ends_with("\n\n") || text.ends_with("\r\n\r\n");
}

}  // namespace

AnswerRelay::AnswerRelay(ServerConnection& client, ClientConnection& worker,
                         GatewayMetrics& metrics, Selection& selection, const Patience& patience,
                         Kind kind, const UsageWish& usage, const Watch& watch)
    : client_(client),
      worker_(worker),
      metrics_(metrics),
      selection_(selection),
      patience_(patience),
      kind_(kind),
      events_(IsEventStream(worker.head())),
      agents_(watch.form == AnswerForm::kMessages || watch.form == AnswerForm::kResponses ||
              watch.form == AnswerForm::kGenerate),
      reads_(usage.action != UsageWish::Action::kIgnore && (kind == Kind::kCompletion || agents_) &&
             worker.head().status == 200 && !IsEncoded(worker.head())),
      takes_out_(reads_ && events_ && usage.action == UsageWish::Action::kTakeOut),
      seeks_id_(watch.reads_id && worker.head().status == 200 && !IsEncoded(worker.head())),
      keeps_length_(worker.head().framing == BodyFraming::kLength && !takes_out_),
      form_(watch.form),
      watches_(form_ != AnswerForm::kOther && worker.head().status == 200 &&
               !IsEncoded(worker.head()) && (events_ || watch.held_bytes > 0)),
      held_bytes_(watch.held_bytes),
      filter_(usage),
      agent_usage_(watch.form),
      finder_(AgentUsage::MemberIn(watch.form)),
      stream_end_(form_),
      end_(form_),
      last_progress_(client.socket().loop().now()) {
  const bool unknown_length = worker.head().framing != BodyFraming::kNone && !keeps_length_;
  const bool http11 = client.head().minor_version >= 1;
  chunked_out_ = unknown_length && http11;
  if (unknown_length && !http11) client.CloseAfterwards();
  const auto held = HeldSize(worker.head(), held_bytes_);
  holds_ = watches_ && !events_ && held && memory_.TryTake(watch.memory, *held);
}

void AnswerRelay::BuildHead(std::string_view extra_headers) {
  const ResponseHead& head = worker_.head();
  head_.Add("HTTP/1.1 ", Decimal(head.status).text(), " ", head.reason, "\r\n");
  for (const Header& header : head.headers.all()) {
    if (IsOurs(header.id) || IsHopByHop(header, head.headers)) continue;
    head_.Add(header.name, ": ", header.value, "\r\n");
  }
  head_.Add(extra_headers);
  if (chunked_out_) head_.Add("transfer-encoding: chunked\r\n");
  if (keeps_length_) {
    head_.Add("content-length: ", Decimal(head.content_length).text(), "\r\n");
  }
  head_.Add(client_.ConnectionLine(), "\r\n");
}

// Removes the framing from the worker's buffer, up to kMaxPieces pieces.
bool AnswerRelay::Decode() {
  std::string_view rest = worker_.in().view();
  piece_count_ = decoded_ = 0;
  while (!rest.empty() && !worker_.body().done() && piece_count_ < kMaxPieces) {
    const auto step = worker_.body().Feed(rest);
    if (!step) {
      failure_ = IoStatus::kError;
      return false;
    }
    if (!step->payload.empty()) pieces_[piece_count_++] = step->payload;
    if (reads_ && !events_) finder_.Feed(step->payload);
    if (watches_ && !events_) end_.Feed(step->payload);
    if (seeks_id_ && !events_) id_.Feed(step->payload);
    rest.remove_prefix(step->consumed);
    decoded_ += step->consumed;
  }
  done_ = done_ || worker_.body().done();
  return true;
}

void AnswerRelay::Hold() {
  for (size_t i = 0; i < piece_count_; ++i) held_ += pieces_[i];
  piece_count_ = 0;
}

// Before the first byte: may the beginning of the answer be sent?
Screening AnswerRelay::Screen() {
  if (worker_.head().status != 200) return Screening::kPass;
  if (kind_ != Kind::kCompletion && !(agents_ && events_ && watches_)) return Screening::kPass;
  const bool short_json = !events_ && worker_.head().framing == BodyFraming::kLength &&
                          worker_.head().content_length <= kScreenedAnswer;
  if (!events_ && !short_json) return Screening::kPass;
  if (short_json && !done_) return Screening::kWait;
  std::string_view seen = piece_count_ > 0 ? pieces_[0] : std::string_view();
  if (!held_.empty() || piece_count_ > 1) {
    Hold();
    seen = held_;
  }
  if (short_json) return ScreenJson(seen);
  const std::string_view whole = seen.substr(0, done_ ? seen.size() : WholeEvents(seen));
  return agents_ ? ScreenAgentEvents(whole) : ScreenEvents(whole);
}

// Whether the pieces can be sent without being assembled into whole events.
bool AnswerRelay::PiecesPass() {
  if (!events_ || (!reads_ && !watches_ && !seeks_id_)) return true;
  if (seeks_id_ && piece_count_ > 0) return false;
  for (size_t i = 0; i < piece_count_; ++i) {
    if (i + 1 < piece_count_ && !EndsWithBlankLine(pieces_[i])) return false;
    if (watches_ && stream_end_.Mentions(pieces_[i])) return false;
    if (reads_ && HasUsage(pieces_[i])) return false;
  }
  return true;
}

// Whether these events must be read, or changed, for their usage.
bool AnswerRelay::HasUsage(std::string_view events) {
  return agents_ ? agent_usage_.Mentions(events) : !filter_.Passes(events);
}

// An answer that is not streamed, and may still be one that the engine ends early.
bool AnswerRelay::HoldsOn() const {
  size_t size = held_.size();
  for (size_t i = 0; i < piece_count_; ++i) size += pieces_[i].size();
  return holds_ && !done_ && size <= held_bytes_;
}

bool AnswerRelay::EndedEarlyWhole() const {
  return watches_ && !events_ && done_ && end_.ended_early();
}

// Of a stream, the events before that end are still sent.
void AnswerRelay::StopAtEarlyEnd() {
  if (!watches_) return;
  if (events_) {
    const size_t at = stream_end_.Find(std::string_view(held_).substr(0, showable_));
    ended_early_ = at != std::string_view::npos;
    if (ended_early_) showable_ = at;
  } else {
    ended_early_ = EndedEarlyWhole();
    if (ended_early_) showable_ = 0;
  }
}

// Whether the stream is over, as far as is known, and its closing event has not come.
bool AnswerRelay::LacksEnd() const {
  return events_ && watches_ && done_ && read_all_ && !ended_early_ && stream_end_.IsCut();
}

// The whole events before the cut are still sent. If the client knows the length of the body, it
// must not get all of it.
bool AnswerRelay::StopAtCut() {
  if (!LacksEnd()) return false;
  showable_ = keeps_length_ ? 0 : WholeEvents(held_, torn_);
  failure_ = IoStatus::kEof;
  return true;
}

// Sends the pieces unchanged, or else the part of the held bytes that ends with a whole event.
void AnswerRelay::PrepareOutput() {
  const bool whole =
      !events_ || done_ || (piece_count_ > 0 && EndsWithBlankLine(pieces_[piece_count_ - 1]));
  direct_ = held_.empty() && whole && PiecesPass() && !EndedEarlyWhole() && !LacksEnd();
  part_sent_ = part_sent_ && !direct_;
  if (direct_) {
    sending_ = 0;
    for (size_t i = 0; i < piece_count_; ++i) sending_ += pieces_[i].size();
    return;
  }
  Hold();
  const bool all = !events_ || done_;
  showable_ = all ? held_.size() : WholeEvents(held_, torn_);
  StopAtEarlyEnd();
  cut_ = StopAtCut();
  if (seeks_id_ && events_) id_.Read(std::string_view(held_).substr(0, showable_));
  if (reads_ && events_ && agents_) {
    agent_usage_.Read(std::string_view(held_).substr(0, showable_));
  } else if (reads_ && events_) {
    showable_ = filter_.Filter(held_, showable_);
  }
  const size_t most = takes_out_ || agents_ ? kMaxFilteredEvent : kMaxHeldEvent;
  const bool part = showable_ == 0 && held_.size() > most && !ended_early_ && !cut_;
  if (part) showable_ = held_.size();
  read_all_ = read_all_ && !part;
  part_sent_ = part || (part_sent_ && showable_ == 0);
  torn_ = held_.size() - showable_;
  sending_ = showable_;
}

// Head, chunk prefix, body, chunk suffix, last chunk: as much as one system call can send.
size_t AnswerRelay::Gather(std::array<iovec, kMaxPieces + 4>& parts, const ChunkPrefix& prefix) {
  size_t count = 0;
  const auto add = [&](std::string_view text) {
    if (!text.empty()) parts[count++] = {const_cast<char*>(text.data()), text.size()};
  };
  if (!head_sent_) add(head_.text());
  const bool chunk = chunked_out_ && sending_ > 0;
  if (chunk) add(prefix.text());
  if (direct_) {
    for (size_t i = 0; i < piece_count_; ++i) add(pieces_[i]);
  } else {
    add(std::string_view(held_).substr(0, showable_));
  }
  const bool last = done_ && !ended_early_ && !cut_;
  if (chunk && !last) add(kChunkSuffix);
  if (chunk && last) add(kSuffixAndLastChunk);
  if (chunked_out_ && !chunk && last) add(kLastChunk);
  return count;
}

void AnswerRelay::Account(TimePoint now) {
  if (!head_sent_) {
    metrics_.time_to_first_token.Observe(now - client_.request_started());
    selection_.OnFirstByte(worker_.head().status);
  } else if (events_) {
    metrics_.inter_token_latency.Observe(now - last_progress_);
    selection_.OnPiece();
  }
  last_progress_ = now;
  bytes_ += sending_;
  if (!events_ || form_ != AnswerForm::kResponses) return;
  for (size_t i = 0; direct_ && i < piece_count_; ++i) sequence_.Read(pieces_[i]);
  if (!direct_) sequence_.Read(std::string_view(held_).substr(0, showable_));
}

// Before the client can use it.
void AnswerRelay::TellId() {
  if (!seeks_id_ || (!events_ && !done_)) return;
  const auto id = events_ ? id_.of_stream() : id_.OfWhole();
  if (id) selection_.OnResponse(*id);
  seeks_id_ = events_ && id_.seeks() && !done_;
}

void AnswerRelay::TellUsage() {
  if (!reads_ || told_usage_) return;
  std::optional<EngineUsage> usage;
  if (events_ && agents_) {
    if (done_ && !cut_) usage = agent_usage_.usage();
  } else if (events_ && (done_ || filter_.final())) {
    usage = filter_.usage();
  } else if (const auto member = done_ ? finder_.value() : std::nullopt) {
    usage = ReadUsage(*member);
  }
  if (!usage) return;
  told_usage_ = true;
  metrics_.usage_seen.Add();
  selection_.OnUsage(*usage);
}

TimePoint AnswerRelay::ReadDeadline() const {
  const TimePoint now = client_.socket().loop().now();
  const bool begun = head_sent_ || (holds_ && !held_.empty());
  return std::min(now + (begun ? patience_.idle : patience_.first_byte), patience_.give_up_at);
}

// What to do with the bytes that just arrived: kPass sends them, kWait holds them.
Screening AnswerRelay::Examine() {
  if (head_sent_) return Screening::kPass;
  if (HoldsOn()) return Screening::kWait;
  const bool nothing = piece_count_ == 0 && held_.empty() && !done_;
  const Screening verdict = nothing ? Screening::kWait : Screen();
  const bool must_show = done_ || held_.size() > kMaxHeldEvent;
  return verdict == Screening::kWait && must_show ? Screening::kPass : verdict;
}

Task<AnswerRelay::End> AnswerRelay::Run(std::string_view extra_headers) {
  BuildHead(extra_headers);
  worker_.in().Consume(worker_.head_size());
  std::array<iovec, kMaxPieces + 4> parts;
  for (;;) {
    if (!Decode()) co_return End::kWorkerFailed;
    const Screening verdict = Examine();
    if (verdict == Screening::kEmptyAbort) co_return End::kEmptyAbort;
    if (verdict == Screening::kWait) Hold();
    if (verdict == Screening::kPass) PrepareOutput();
    if (ended_early_ && !head_sent_) co_return End::kEndedEarly;
    if (cut_ && !head_sent_) co_return End::kWorkerFailed;
    const bool ends = done_ && !ended_early_ && !cut_;
    if (verdict == Screening::kPass && (sending_ > 0 || ends)) {
      const ChunkPrefix prefix(sending_);
      const std::span<iovec> out(parts.data(), Gather(parts, prefix));
      Account(client_.socket().loop().now());
      TellId();
      TellUsage();
      head_sent_ = true;
      client_.MarkAnswered();
      const IoResult written = co_await client_.socket().Write(out, client_.WriteDeadline());
      if (!written.ok()) co_return End::kClientLeft;
      if (!direct_) held_.erase(0, showable_);
    }
    if (ended_early_) co_return End::kEndedEarly;
    if (cut_) co_return End::kWorkerFailed;
    worker_.in().Consume(decoded_);
    if (done_) co_return End::kComplete;
    if (!worker_.in().empty()) continue;  // the buffer held more than kMaxPieces
    const IoResult read = co_await worker_.socket().Read(worker_.in().room(), ReadDeadline());
    if (read.ok()) {
      worker_.in().Commit(read.bytes);
      continue;
    }
    failure_ = read.status;
    done_ = read.status == IoStatus::kEof && worker_.body().framing() == BodyFraming::kUntilClose;
    if (!done_) co_return End::kWorkerFailed;
  }
}

Task<void> AnswerRelay::BreakOff(int status, std::string_view code, std::string_view message) {
  client_.CloseAfterwards();
  // A body of known length has no room for an error event, and a body of the full length would look
  // complete to the client.
  if (!events_ || keeps_length_) {
    client_.socket().ResetOnClose();
    co_return;
  }
  // The client must not read the error as the rest of an event.
  const std::string event =
      (part_sent_ ? "\n\n" : "") + ApiErrorEvent(form_, status, code, message, sequence_.next());
  std::string out = event;
  if (chunked_out_) {
    const ChunkPrefix prefix(event.size());
    out.assign(prefix.text()).append(event).append(kSuffixAndLastChunk);
  }
  const IoResult written = co_await client_.socket().Write(out, client_.WriteDeadline());
  static_cast<void>(written);  // if the write fails, the client has left
}

}  // namespace fathom
