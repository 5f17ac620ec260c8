// One small HTTP call and its complete answer: for health checks, capability probes and tools.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/http/client_connection.h"

namespace fathom {

struct FetchRequest {
  std::string_view method = "GET";
  std::string path;  // appended to the endpoint's path
  std::vector<std::pair<std::string, std::string>> headers;
  std::string_view body;
  size_t max_answer = 4 << 20;
  std::span<const std::string_view> wanted = {};  // headers of the answer that are kept
};

struct FetchAnswer {
  int status = 0;
  std::string body;
  std::vector<std::string> headers = {};  // values of those wanted, in that order; empty: missing
};

// Uses a new connection and closes it afterwards.
Task<NetResult<FetchAnswer>> Fetch(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                   const FetchRequest& request, TimePoint deadline);

// Such calls to one server, one after the other, over a connection that is kept between them, but
// not for long: the server's name may lead to another address by then, and its listener may be
// closed.
class Caller {
 public:
  static constexpr Duration kUsuallyKept = std::chrono::seconds(30);

  // `on_lost` is called when the server has closed the kept connection.
  Caller(Loop& loop, Resolver& resolver, std::shared_ptr<const Endpoint> endpoint,
         std::function<void()> on_lost = nullptr, Duration keep_for = kUsuallyKept)
      : loop_(loop),
        resolver_(resolver),
        endpoint_(std::move(endpoint)),
        on_lost_(std::move(on_lost)),
        keep_for_(keep_for) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // A kept connection that ends before it has answered is replaced by a new one, after `on_lost`.
  Task<NetResult<FetchAnswer>> Fetch(const FetchRequest& request, TimePoint deadline);
  // A call in progress fails soon, but not inside this call.
  void Cancel() {
    if (asked_ != nullptr) asked_->Cancel();
  }

  Loop& loop() { return loop_; }

 private:
  void TellLost() {
    if (on_lost_) on_lost_();
  }
  Task<NetResult<FetchAnswer>> Ask(const FetchRequest& request, TimePoint deadline);

  Loop& loop_;
  Resolver& resolver_;
  const std::shared_ptr<const Endpoint> endpoint_;
  const std::function<void()> on_lost_;
  const Duration keep_for_;
  std::unique_ptr<ClientConnection> kept_;
  ClientConnection* asked_ = nullptr;  // of the call in progress
  TimePoint opened_{};
};

// The complete answer to a request that has been sent on the connection after BeginAnswer().
Task<NetResult<FetchAnswer>> ReceiveAnswer(ClientConnection& connection, bool to_head_request,
                                           size_t max_answer, TimePoint deadline,
                                           std::span<const std::string_view> wanted = {});

// The request line and the headers that every request needs, without the final blank line.
void AppendRequestHead(std::string& out, std::string_view method, const Url& url,
                       std::string_view path);

}  // namespace fathom
