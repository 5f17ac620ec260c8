// One client's connection: reads its requests one after the other, and answers them.
//
// Back-pressure  Answers are written as the client takes them; nothing is queued.
// Deadlines      A head must be complete, a body must make progress, an answer must be taken within
//                the times in ServerOptions; slow clients are cut off.
// Pipelining     Requests that arrive early wait in the buffer.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "codec/http_head.h"
#include "http/body_decoder.h"
#include "http/body_storage.h"
#include "http/buffer.h"
#include "net/socket.h"
#include "net/task.h"

namespace fathom {

// How much memory may all request bodies together take up? Counted as bytes arrive, so that a
// client that only announces a large body takes nothing from the others.
//
// Threads  Any.
class BodyBudget {
 public:
  explicit BodyBudget(uint64_t limit) : limit_(limit) {}

  bool TryTake(uint64_t bytes) {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_) return true;
    Return(bytes);
    return false;
  }
  void Return(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

struct ServerOptions {
  size_t max_head = 64 << 10;
  size_t max_body = 192u << 20;
  std::shared_ptr<BodyBudget> body_budget;  // null: no common limit
  Duration head_timeout = std::chrono::seconds(10);
  Duration body_timeout = std::chrono::seconds(30);  // plus what kSlowestBody allows
  Duration write_timeout = std::chrono::seconds(300);
  Duration keep_alive_timeout = std::chrono::seconds(75);
};

// A whole answer that is known in advance.
struct Answer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Why a request could not be read, and what to tell the client.
struct RequestProblem {
  int status = 400;
  std::string what;
};

class ServerConnection;

class HttpHandler {
 public:
  // Must answer, with Respond() or by writing to the socket itself; when nothing was written the
  // connection is closed.
  virtual Task<void> Handle(ServerConnection& connection) = 0;
  // The request could not be read; the connection is closed after the answer.
  virtual Answer Refuse(const RequestProblem& problem) = 0;

 protected:
  ~HttpHandler() = default;
};

class ServerConnection {
 public:
  ServerConnection(Loop& loop, int fd, const ServerOptions& options)
      : options_(options), socket_(loop, fd), in_(kInitialBuffer) {}
  ~ServerConnection() { FreeBody(); }

  // Serves requests until the client leaves or `draining` says so.
  Task<void> Serve(HttpHandler& handler, const std::atomic<bool>& draining);

  const RequestHead& head() const { return head_; }
  Socket& socket() { return socket_; }
  TimePoint request_started() const { return request_started_; }

  // The body, if all of it came with the head (or there is none). The usual case, and free.
  std::optional<std::string_view> BufferedBody();
  // Reads the whole body. The view is good until the handler returns. On failure the answer to give
  // is in the problem; a client that has left has status 0 there.
  Task<std::expected<std::string_view, RequestProblem>> ReadBody();

  Task<bool> Respond(const Answer& answer);

  // For answers that are written piece by piece.
  TimePoint WriteDeadline() const { return socket_.loop().now() + options_.write_timeout; }
  void MarkAnswered() { answered_ = true; }
  bool answered() const { return answered_; }
  // The next request will not be read. What a Connection header should say follows from it.
  void CloseAfterwards() { keep_alive_ = false; }
  bool keep_alive() const { return keep_alive_ && body_read_; }
  // The line of the answer's head that says so, if one is needed.
  std::string_view ConnectionLine() const;

  // True while it waits for a next request; such a connection may be closed at any time. One that
  // has not sent its first yet was opened for it, and expects an answer.
  bool idle() const { return idle_; }

  // Cuts it off wherever it waits.
  void Cancel() { socket_.Cancel(); }

 private:
  static constexpr size_t kInitialBuffer = 16 << 10;
  static constexpr size_t kBigRead = 256 << 10;
  static constexpr size_t kChunkedRead = 64 << 10;
  static constexpr size_t kSlowestBody = 8 << 10;  // bytes per second, on average, that will do

  Task<std::expected<bool, RequestProblem>> ReadHead(bool first);
  std::expected<bool, RequestProblem> ParseBufferedHead();
  Task<std::expected<void, RequestProblem>> FillBody();
  std::expected<void, RequestProblem> Store(std::string_view payload);
  TimePoint BodyDeadline(TimePoint begun) const;
  void FreeBody();
  void FinishRequest();
  Task<void> Linger();

  const ServerOptions& options_;
  Socket socket_;
  Buffer in_;
  HeadFinder finder_;
  RequestHead head_;
  size_t head_size_ = 0;
  BodyDecoder decoder_;
  size_t body_in_buffer_ = 0;  // bytes of the buffer, after the head, that the body used up
  BodyStorage storage_;
  uint64_t budgeted_ = 0;  // taken from the body budget
  std::string_view body_;
  std::string next_;  // read past the end of a chunked body
  std::string out_;
  TimePoint request_started_{};
  bool body_read_ = false;
  bool keep_alive_ = true;
  bool answered_ = false;
  bool idle_ = false;
};

}  // namespace fathom
