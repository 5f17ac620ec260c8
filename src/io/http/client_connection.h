// One connection to a worker: sends a request, reads the answer's head, hands out its body.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "codec/http_head.h"
#include "codec/url.h"
#include "io/http/body_decoder.h"
#include "io/http/buffer.h"
#include "io/net/resolver.h"
#include "io/net/socket.h"
#include "io/net/task.h"
#include "io/net/tls.h"

namespace fathom {

// The server to connect to. Immutable, shared by the loops.
struct Endpoint {
  Url url;
  std::shared_ptr<const TlsClientContext> tls;  // for https
  std::string name = {};                        // host name, if the URL holds an IP address

  // The URL with the server's name, as certificates and Host headers need it.
  Url Called() const {
    Url called = url;
    if (!name.empty()) called.host = name;
    return called;
  }
};

class ClientConnection final : private HangupWatcher {
 public:
  static constexpr size_t kUsualMaxHead = 64 << 10;

  // `max_head` is the longest head of an answer. The buffer grows for it, and only then.
  explicit ClientConnection(Loop& loop, size_t max_head = kUsualMaxHead)
      : loop_(loop), max_head_(max_head), in_(kBuffer) {}

  // Resolves, connects to the first address that answers and, for https, does the TLS handshake;
  // all of it before the deadline.
  Task<NetResult<void>> Open(const Endpoint& endpoint, Resolver& resolver, TimePoint deadline);

  // Ends the operation that waits here, soon but not inside this call. An Open() in progress fails.
  void Cancel() {
    cancellation_.Cancel();
    if (socket_) socket_->Cancel();
  }
  bool cancelled() const { return cancellation_.cancelled(); }

  Socket& socket() { return *socket_; }

  // Resets the state of the previous answer.
  void BeginAnswer();
  // True if the complete head is in the buffer and head() is valid. Errors blame the worker.
  // Interim answers (1xx) are skipped.
  Result<bool> ParseHead(bool to_head_request);
  const ResponseHead& head() const { return head_; }
  size_t head_size() const { return head_size_; }
  // The answer's bytes as received: first the head, until it is consumed, then the framed body.
  Buffer& in() { return in_; }
  BodyDecoder& body() { return body_; }
  bool answer_started() const { return started_; }
  void MarkStarted() { started_ = true; }

  // After a complete answer: may another request follow on this connection?
  bool Reusable() const;
  // After a complete answer: has the server closed a connection that it promised to keep?
  bool ClosedUnannounced() const {
    return head_.keep_alive && body_.done() && socket_->hung_up() && !cancelled();
  }

  // While the connection is idle in a pool.
  void Rest(std::function<void(ClientConnection&)> on_lost);
  void Wake();
  // For a connection that is idle most of the time. BeginAnswer() takes a new buffer.
  void ReleaseBuffer() { in_ = Buffer(0); }
  bool quiet() const { return socket_->quiet() && !socket_->hung_up(); }
  TimePoint idle_since() const { return idle_since_; }
  bool reused() const { return reused_; }

 private:
  static constexpr size_t kBuffer = 32 << 10;

  void OnHangup() override { on_lost_(*this); }

  Loop& loop_;
  const size_t max_head_;
  std::unique_ptr<Socket> socket_;
  Buffer in_;
  HeadFinder finder_;
  ResponseHead head_;
  size_t head_size_ = 0;
  BodyDecoder body_;
  std::function<void(ClientConnection&)> on_lost_;
  TimePoint idle_since_{};
  Cancellation cancellation_;
  bool started_ = false;
  bool reused_ = false;
};

}  // namespace fathom
