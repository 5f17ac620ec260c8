// One client's connection: reads its requests one after the other and answers them.
//
// Back-pressure  Answers are written as fast as the client reads them; nothing is queued.
// Deadlines      A head must be complete, a body must make progress and an answer must be read
//                within the times in ServerOptions; the connection of a slower client is closed.
// Pipelining     Requests that arrive early wait in the buffer.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/request_memory.h"
#include "base/result.h"
#include "codec/http_head.h"
#include "io/http/body_decoder.h"
#include "io/http/body_storage.h"
#include "io/http/buffer.h"
#include "io/net/socket.h"
#include "io/net/task.h"

namespace fathom {

struct ServerOptions {
  size_t max_head = 64 << 10;
  size_t max_body = 192u << 20;
  // For all bodies together, by bytes that have arrived: to announce a large body takes none. Null:
  // no shared limit.
  std::shared_ptr<RequestMemory> body_budget;
  Duration head_timeout = std::chrono::seconds(10);
  Duration body_timeout = std::chrono::seconds(30);  // plus body bytes / kSlowestBody
  Duration write_timeout = std::chrono::seconds(300);
  Duration keep_alive_timeout = std::chrono::seconds(75);
};

// A complete answer, known before it is sent.
struct Answer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Why a request could not be read, and the answer for the client.
struct RequestProblem {
  int status = 400;
  std::string what;
};

class ServerConnection;

class HttpHandler {
 public:
  // Must answer, with Respond() or by writing to the socket directly. Without an answer the
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

  // Serves requests until the client closes or `draining` is set.
  Task<void> Serve(HttpHandler& handler, const std::atomic<bool>& draining);

  const RequestHead& head() const { return head_; }
  Socket& socket() { return socket_; }
  TimePoint request_started() const { return request_started_; }

  // The body, if all of it arrived with the head (or there is none). The usual case, without a
  // copy.
  std::optional<std::string_view> BufferedBody();
  // Reads the whole body. The view is valid until the handler returns. On failure the problem holds
  // the answer to send; its status is 0 if the client has closed the connection.
  Task<std::expected<std::string_view, RequestProblem>> ReadBody();

  Task<bool> Respond(const Answer& answer);

  // For streamed answers.
  TimePoint WriteDeadline() const { return socket_.loop().now() + options_.write_timeout; }
  void MarkAnswered() { answered_ = true; }
  bool answered() const { return answered_; }
  // No next request will be read; ConnectionLine() reflects it.
  void CloseAfterwards() { keep_alive_ = false; }
  bool keep_alive() const { return keep_alive_ && body_read_; }
  // The Connection header line of the answer, empty if none is needed.
  std::string_view ConnectionLine() const;

  // True while the connection waits for a next request; it may then be closed at any time. Not
  // before the first request: a client that has just connected expects an answer.
  bool idle() const { return idle_; }

  // Ends the operation that the connection waits in.
  void Cancel() { socket_.Cancel(); }

 private:
  static constexpr size_t kInitialBuffer = 16 << 10;
  static constexpr size_t kBigRead = 256 << 10;
  static constexpr size_t kChunkedRead = 64 << 10;
  static constexpr size_t kSlowestBody = 8 << 10;  // lowest accepted average rate, bytes per second

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
  size_t body_in_buffer_ = 0;  // bytes of the buffer, after the head, that belong to the body
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
