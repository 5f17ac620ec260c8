#include "gateway/answer_relay.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "codec/sse.h"
#include "gateway/openai_error.h"

namespace fathom {
namespace {

constexpr size_t kScreenedAnswer = 4096;     // an answer with nothing in it is short
constexpr size_t kMaxHeldEvent = 256 << 10;  // an event longer than this is passed on as it comes

bool IsEventStream(const ResponseHead& head) {
  constexpr std::string_view kType = "text/event-stream";
  const Header* const type = head.headers.Find(HeaderName::kContentType);
  return type != nullptr && EqualsIgnoreCase(type->value.substr(0, kType.size()), kType);
}

bool EndsWithBlankLine(std::string_view text) {
  return text.ends_with("\n\n") || text.ends_with("\r\n\r\n");
}

}  // namespace

AnswerRelay::AnswerRelay(ServerConnection& client, ClientConnection& worker,
                         GatewayMetrics& metrics, const Patience& patience)
    : client_(client),
      worker_(worker),
      metrics_(metrics),
      patience_(patience),
      events_(IsEventStream(worker.head())),
      last_progress_(client.socket().loop().now()) {
  const BodyFraming framing = worker.head().framing;
  const bool unknown_length =
      framing == BodyFraming::kChunked || framing == BodyFraming::kUntilClose;
  const bool http11 = client.head().minor_version >= 1;
  chunked_out_ = unknown_length && http11;
  if (unknown_length && !http11) client.CloseAfterwards();
}

void AnswerRelay::BuildHead(std::string_view extra_headers) {
  const ResponseHead& head = worker_.head();
  head_.reserve(512);
  head_.append("HTTP/1.1 ").append(fmt::format_int(head.status).c_str()).append(" ");
  head_.append(head.reason).append("\r\n");
  for (const Header& header : head.headers.all()) {
    if (header.id == HeaderName::kContentLength || header.id == HeaderName::kRequestId ||
        header.id == HeaderName::kFathomWorker || IsHopByHop(header, head.headers)) {
      continue;
    }
    head_.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  head_.append(extra_headers);
  if (chunked_out_) head_.append("transfer-encoding: chunked\r\n");
  if (head.framing == BodyFraming::kLength) {
    head_.append("content-length: ").append(fmt::format_int(head.content_length).c_str());
    head_.append("\r\n");
  }
  head_.append(client_.ConnectionLine()).append("\r\n");
}

// Takes the framing off what lies in the worker's buffer, as far as kMaxPieces reach.
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

// Before the first byte: may the beginning of the answer be shown?
Screening AnswerRelay::Screen() {
  if (worker_.head().status != 200) return Screening::kPass;
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
  return ScreenEvents(seen.substr(0, done_ ? seen.size() : WholeEvents(seen)));
}

// The pieces go out as they are, or else as much of what is held as ends with a whole event.
void AnswerRelay::ChooseOutput() {
  const bool whole =
      !events_ || done_ || (piece_count_ > 0 && EndsWithBlankLine(pieces_[piece_count_ - 1]));
  direct_ = held_.empty() && whole;
  if (direct_) {
    sending_ = 0;
    for (size_t i = 0; i < piece_count_; ++i) sending_ += pieces_[i].size();
    return;
  }
  Hold();
  const bool all = !events_ || done_ || held_.size() > kMaxHeldEvent;
  sending_ = showable_ = all ? held_.size() : WholeEvents(held_);
}

// Head, chunk prefix, body, chunk suffix, last chunk: all that one system call can take along.
size_t AnswerRelay::Gather(std::array<iovec, kMaxPieces + 4>& parts, const ChunkPrefix& prefix) {
  size_t count = 0;
  const auto add = [&](std::string_view text) {
    if (!text.empty()) parts[count++] = {const_cast<char*>(text.data()), text.size()};
  };
  if (!head_sent_) add(head_);
  const bool chunk = chunked_out_ && sending_ > 0;
  if (chunk) add(prefix.text());
  if (direct_) {
    for (size_t i = 0; i < piece_count_; ++i) add(pieces_[i]);
  } else {
    add(std::string_view(held_).substr(0, showable_));
  }
  if (chunk && !done_) add(kChunkSuffix);
  if (chunk && done_) add(kSuffixAndLastChunk);
  if (chunked_out_ && !chunk && done_) add(kLastChunk);
  return count;
}

void AnswerRelay::Account(TimePoint now) {
  if (!head_sent_) {
    metrics_.time_to_first_token.Observe(now - client_.request_started());
  } else if (events_) {
    metrics_.inter_token_latency.Observe(now - last_progress_);
  }
  last_progress_ = now;
  bytes_ += sending_;
}

// False: the client has left.
Task<bool> AnswerRelay::Send() {
  ChooseOutput();
  if (sending_ == 0 && !done_) co_return true;
  std::array<iovec, kMaxPieces + 4> parts;
  const ChunkPrefix prefix(sending_);
  const std::span<iovec> out(parts.data(), Gather(parts, prefix));
  Account(client_.socket().loop().now());
  head_sent_ = true;
  client_.MarkAnswered();
  const IoResult written = co_await client_.socket().Write(out, client_.WriteDeadline());
  if (!direct_) held_.erase(0, showable_);
  co_return written.ok();
}

// False: the worker has failed, or its connection was cancelled.
Task<bool> AnswerRelay::ReadMore() {
  const TimePoint now = client_.socket().loop().now();
  const Duration wait = head_sent_ ? patience_.idle : patience_.first_byte;
  const TimePoint deadline = std::min(now + wait, patience_.give_up_at);
  const IoResult read = co_await worker_.socket().Read(worker_.in().room(), deadline);
  if (read.ok()) {
    worker_.in().Commit(read.bytes);
    co_return true;
  }
  failure_ = read.status;
  done_ = read.status == IoStatus::kEof && worker_.body().framing() == BodyFraming::kUntilClose;
  co_return done_;
}

Task<AnswerRelay::End> AnswerRelay::Run(std::string_view extra_headers) {
  BuildHead(extra_headers);
  worker_.in().Consume(worker_.head_size());
  for (;;) {
    if (!Decode()) co_return End::kWorkerFailed;
    Screening verdict = Screening::kPass;
    if (!head_sent_) {
      const bool nothing = piece_count_ == 0 && held_.empty() && !done_;
      verdict = nothing ? Screening::kWait : Screen();
      if (verdict == Screening::kEmptyAbort) co_return End::kEmptyAbort;
      if (done_ || held_.size() > kMaxHeldEvent) verdict = Screening::kPass;
    }
    if (verdict == Screening::kWait) {
      Hold();
    } else {
      auto sending = Send();
      const bool sent = co_await sending;
      if (!sent) co_return End::kClientLeft;
    }
    worker_.in().Consume(decoded_);
    if (done_) co_return End::kComplete;
    if (!worker_.in().empty()) continue;  // it held more than kMaxPieces
    auto reading = ReadMore();
    const bool more = co_await reading;
    if (!more) co_return End::kWorkerFailed;
  }
}

Task<void> AnswerRelay::BreakOff() {
  client_.CloseAfterwards();
  // A body of known length has no room for one more event: the client would see it cut off where
  // the length says that all is well.
  if (!events_ || worker_.head().framing == BodyFraming::kLength) {
    client_.socket().ResetOnClose();
    co_return;
  }
  std::string event = "data: ";
  event += OpenAiErrorBody(502, "worker_failed", "the worker failed while it was answering");
  event += "\n\n";
  std::string out = event;
  if (chunked_out_) {
    const ChunkPrefix prefix(event.size());
    out.assign(prefix.text()).append(event).append(kSuffixAndLastChunk);
  }
  const IoResult written = co_await client_.socket().Write(out, client_.WriteDeadline());
  static_cast<void>(written);  // a client that has left does not need to be told
}

}  // namespace fathom
