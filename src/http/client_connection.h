// One connection to a worker: sends a request, reads the answer's head, hands out its body.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "codec/http_head.h"
#include "codec/url.h"
#include "http/body_decoder.h"
#include "http/buffer.h"
#include "net/resolver.h"
#include "net/socket.h"
#include "net/task.h"
#include "net/tls.h"

namespace fathom {

// Who to talk to. Immutable, shared by the loops.
struct Endpoint {
  Url url;
  std::shared_ptr<const TlsClientContext> tls;  // for https
  std::string name = {};                        // of the host, where the URL has its address

  // The URL with the name that the server goes by, in certificates and Host headers.
  Url Called() const {
    Url called = url;
    if (!name.empty()) called.host = name;
    return called;
  }
};

class ClientConnection final : private HangupWatcher {
 public:
  explicit ClientConnection(Loop& loop) : loop_(loop), in_(kBuffer) {}

  // Resolves, connects and, for https, shakes hands. Tries each address of the name in turn.
  Task<Result<void>> Open(const Endpoint& endpoint, Resolver& resolver, TimePoint deadline);

  // Ends whatever waits here, now or in the next moment.
  void Cancel() {
    cancelled_ = true;
    if (socket_) socket_->Cancel();
  }
  bool cancelled() const { return cancelled_; }

  Socket& socket() { return *socket_; }

  // Forgets the last answer.
  void BeginAnswer();
  // True if a whole head is in the buffer now and head() is valid; errors are the worker's.
  // Interim answers (1xx) are skipped.
  Result<bool> ParseHead(bool to_head_request);
  const ResponseHead& head() const { return head_; }
  size_t head_size() const { return head_size_; }
  // The answer's bytes as they came: first the head, until it is consumed, then the framed body.
  Buffer& in() { return in_; }
  BodyDecoder& body() { return body_; }
  bool answer_started() const { return started_; }
  void MarkStarted() { started_ = true; }

  // After a complete answer: may another request follow on this connection?
  bool Reusable() const;

  // While it lies in a pool.
  void Rest(std::function<void(ClientConnection&)> on_lost);
  void Wake();
  bool quiet() const { return socket_->quiet() && !socket_->hung_up(); }
  TimePoint idle_since() const { return idle_since_; }
  bool reused() const { return reused_; }

 private:
  static constexpr size_t kBuffer = 32 << 10;

  void OnHangup() override { on_lost_(*this); }

  Loop& loop_;
  std::unique_ptr<Socket> socket_;
  Buffer in_;
  HeadFinder finder_;
  ResponseHead head_;
  size_t head_size_ = 0;
  BodyDecoder body_;
  std::function<void(ClientConnection&)> on_lost_;
  TimePoint idle_since_{};
  bool cancelled_ = false;
  bool started_ = false;
  bool reused_ = false;
};

}  // namespace fathom
