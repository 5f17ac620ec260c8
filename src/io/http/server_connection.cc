#include "io/http/server_connection.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/http/status.h"

namespace fathom {
namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr Duration kLingerTime = std::chrono::seconds(2);
constexpr size_t kLingerBytes = 64 << 20;

std::unexpected<RequestProblem> Refusal(int status, std::string what) {
  return std::unexpected(RequestProblem{status, std::move(what)});
}

// The client has closed the connection: there is no one to answer.
std::unexpected<RequestProblem> Gone() { return Refusal(0, "client left"); }

}  // namespace

Task<void> ServerConnection::Serve(HttpHandler& handler, const std::atomic<bool>& draining) {
  for (bool first = true; keep_alive_; first = false) {
    auto reading = ReadHead(first);
    const auto head = co_await reading;
    if (!head) {
      if (head.error().status == 0) co_return;
      keep_alive_ = false;
      const Answer refusal = handler.Refuse(head.error());
      auto answering = Respond(refusal);
      co_await answering;
      break;
    }
    if (!*head) co_return;  // the client closed between requests
    keep_alive_ = head_.keep_alive && !draining.load(std::memory_order_relaxed);
    auto handling = handler.Handle(*this);
    co_await handling;
    if (!answered_) co_return;
    if (!body_read_) break;
    FinishRequest();
    if (draining.load(std::memory_order_relaxed)) co_return;
  }
  if (!body_read_) {
    auto lingering = Linger();
    co_await lingering;
  }
}

std::expected<bool, RequestProblem> ServerConnection::ParseBufferedHead() {
  std::string_view bytes = in_.view();
  if (bytes.starts_with("\r\n")) {  // some clients send an extra CRLF after a body
    in_.Consume(2);
    bytes = in_.view();
  }
  const auto size = finder_.Find(bytes);
  if (!size) return Refusal(400, size.error().what);
  if (*size == 0) {
    if (bytes.size() < options_.max_head) return false;
    return Refusal(431, fmt::format("the request head is longer than {} bytes", options_.max_head));
  }
  if (*size > options_.max_head) {
    return Refusal(431, fmt::format("the request head is longer than {} bytes", options_.max_head));
  }
  const auto parsed = ParseRequestHead(bytes.substr(0, *size), head_);
  if (!parsed) return Refusal(400, parsed.error().what);
  head_size_ = *size;
  return true;
}

// True: a head was read. False: the client closed, or stayed idle, between requests.
Task<std::expected<bool, RequestProblem>> ServerConnection::ReadHead(bool first) {
  Loop& loop = socket_.loop();
  finder_ = HeadFinder();
  answered_ = false;
  body_read_ = false;
  head_.method = {};
  head_.framing = BodyFraming::kUntilClose;  // until a head is parsed, all input is unread
  if (!in_.empty()) {
    request_started_ = loop.now();
    const auto parsed = ParseBufferedHead();
    if (!parsed || *parsed) co_return parsed;
  }
  TimePoint deadline =
      loop.now() + (first || !in_.empty() ? options_.head_timeout : options_.keep_alive_timeout);
  for (;;) {
    if (in_.room().empty())
      in_.Grow(std::min(in_.capacity() * 2, options_.max_head + kInitialBuffer));
    idle_ = in_.empty() && !first;
    const IoResult read = co_await socket_.Read(in_.room(), deadline);
    idle_ = false;
    if (!read.ok()) {
      if (in_.empty()) co_return false;
      if (read.status == IoStatus::kTimeout)
        co_return Refusal(408, "the request head took too long");
      co_return Gone();
    }
    if (in_.empty()) {
      request_started_ = loop.now();
      if (!first) deadline = loop.now() + options_.head_timeout;
    }
    in_.Commit(read.bytes);
    const auto parsed = ParseBufferedHead();
    if (!parsed || *parsed) co_return parsed;
  }
}

std::optional<std::string_view> ServerConnection::BufferedBody() {
  if (body_read_) return body_;
  const std::string_view rest = in_.view().substr(head_size_);
  const uint64_t length = head_.framing == BodyFraming::kNone ? 0 : head_.content_length;
  if (head_.framing == BodyFraming::kChunked || length > rest.size()) return std::nullopt;
  if (length > options_.max_body) return std::nullopt;
  body_ = rest.substr(0, length);
  body_in_buffer_ = length;
  body_read_ = true;
  return body_;
}

Task<std::expected<std::string_view, RequestProblem>> ServerConnection::ReadBody() {
  if (const auto here = BufferedBody()) co_return *here;
  if (head_.framing == BodyFraming::kLength && head_.content_length > options_.max_body) {
    co_return Refusal(413,
                      fmt::format("the request body of {} bytes is longer than the limit of {}",
                                  head_.content_length, options_.max_body));
  }
  body_in_buffer_ = 0;
  decoder_ = BodyDecoder(head_.framing, head_.content_length);
  auto filling = FillBody();
  const auto filled = co_await filling;
  if (!filled) co_return std::unexpected(filled.error());
  body_ = storage_.view();
  body_read_ = true;
  co_return body_;
}

std::expected<void, RequestProblem> ServerConnection::Store(std::string_view payload) {
  if (storage_.view().size() + payload.size() > options_.max_body) {
    return Refusal(413, fmt::format("the request body is longer than the limit of {} bytes",
                                    options_.max_body));
  }
  if (options_.body_budget) {
    if (!options_.body_budget->TryTake(payload.size())) {
      return Refusal(503, "too many large requests at once; try again shortly");
    }
    budgeted_ += payload.size();
  }
  if (!storage_.Reserve(payload.size(), options_.max_body)) {
    return Refusal(503, "out of memory for the request body");
  }
  if (payload.data() == storage_.room().data()) {
    storage_.Commit(payload.size());  // the bytes were read directly into the storage
  } else {
    storage_.Append(payload);
  }
  return {};
}

// The deadline extends only with received bytes, so a body slower than kSlowestBody is rejected
// even if it makes steady progress.
TimePoint ServerConnection::BodyDeadline(TimePoint begun) const {
  return begun + options_.body_timeout +
         std::chrono::seconds(storage_.view().size() / kSlowestBody);
}

// Reads the rest of the body into storage_. A body of known length is read directly into it.
Task<std::expected<void, RequestProblem>> ServerConnection::FillBody() {
  if (head_.expect_continue && in_.view().size() == head_size_) {
    const IoResult told = co_await socket_.Write(kContinue, WriteDeadline());
    if (!told.ok()) co_return Gone();
  }
  const TimePoint begun = socket_.loop().now();
  const bool known = head_.framing == BodyFraming::kLength;
  if (known && !storage_.Reserve(head_.content_length, head_.content_length)) {
    co_return Refusal(503, "out of memory for the request body");
  }
  std::string raw(known ? 0 : kChunkedRead, '\0');       // framed bytes before decoding
  std::string_view got = in_.view().substr(head_size_);  // first the bytes after the head
  for (bool in_buffer = true;; in_buffer = false) {
    while (!got.empty() && !decoder_.done()) {
      const auto step = decoder_.Feed(got);
      if (!step) co_return Refusal(400, step.error().what);
      const auto stored = Store(step->payload);
      if (!stored) co_return stored;
      if (in_buffer) body_in_buffer_ += step->consumed;
      got.remove_prefix(step->consumed);
    }
    if (decoder_.done()) {
      if (!in_buffer) next_ = got;  // the start of the next request
      co_return std::expected<void, RequestProblem>();
    }
    std::span<char> room(raw);
    if (known) {
      const size_t left = head_.content_length - storage_.view().size();
      room = storage_.room().first(std::min(left, kBigRead));
    }
    const IoResult read = co_await socket_.Read(room, BodyDeadline(begun));
    if (read.status == IoStatus::kTimeout) co_return Refusal(408, "the request body took too long");
    if (!read.ok()) co_return Gone();
    got = std::string_view(room.data(), read.bytes);
  }
}

void ServerConnection::FreeBody() {
  if (options_.body_budget) options_.body_budget->Return(std::exchange(budgeted_, 0));
  storage_.Free();
  body_ = {};
}

void ServerConnection::FinishRequest() {
  in_.Consume(head_size_ + body_in_buffer_);
  in_.Compact();
  if (!next_.empty()) {
    in_.Grow(in_.size() + next_.size());
    std::copy(next_.begin(), next_.end(), in_.room().begin());
    in_.Commit(next_.size());
    next_.clear();
  }
  head_size_ = body_in_buffer_ = 0;
  FreeBody();
}

std::string_view ServerConnection::ConnectionLine() const {
  if (!keep_alive()) return "connection: close\r\n";
  return head_.minor_version == 0 ? "connection: keep-alive\r\n" : "";
}

Task<bool> ServerConnection::Respond(const Answer& answer) {
  out_.clear();
  fmt::format_to(std::back_inserter(out_), "HTTP/1.1 {} {}\r\n", answer.status,
                 ReasonPhrase(answer.status));
  if (!answer.content_type.empty() && answer.status != 204) {
    fmt::format_to(std::back_inserter(out_), "content-type: {}\r\n", answer.content_type);
  }
  for (const auto& [name, value] : answer.headers) {
    fmt::format_to(std::back_inserter(out_), "{}: {}\r\n", name, value);
  }
  if (answer.status != 204) {
    fmt::format_to(std::back_inserter(out_), "content-length: {}\r\n", answer.body.size());
  }
  // An unread body precedes the next request in the stream, so the connection cannot be reused.
  const bool unread = !body_read_ && head_.framing != BodyFraming::kNone;
  if (!unread) body_read_ = true;
  out_.append(ConnectionLine()).append("\r\n");
  if (head_.method != "HEAD") out_ += answer.body;
  answered_ = true;
  const IoResult written = co_await socket_.Write(out_, WriteDeadline());
  if (!written.ok()) keep_alive_ = false;
  co_return written.ok();
}

// Lets the client read the answer before the connection closes: closing a socket with unread bytes
// resets the connection, and the client could lose the answer.
Task<void> ServerConnection::Linger() {
  socket_.FinishSending();
  const TimePoint deadline = socket_.loop().now() + kLingerTime;
  in_.Consume(in_.size());
  for (size_t total = 0; total < kLingerBytes;) {
    const IoResult read = co_await socket_.Read(in_.room(), deadline);
    if (!read.ok()) co_return;
    total += read.bytes;
  }
}

}  // namespace fathom
