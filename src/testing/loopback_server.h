// A handler behind a real HttpServer on the loopback, on its own thread, for tests.
//
// When it is destroyed, clients must have left or be about to: it waits for their connections to
// end, so that no coroutine waits on a loop that has stopped.
#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "io/http/server.h"
#include "testing/loop_thread.h"

namespace fathom {

class LoopbackServer {
 public:
  LoopbackServer(LoopThread& thread, HttpHandler& handler, const ServerOptions& options = {},
                 size_t max_connections = 1000,
                 std::shared_ptr<const TlsServerContext> tls = nullptr)
      : thread_(thread) {
    std::vector<HttpServer::Place> places = {{&thread.loop(), &handler}};
    server_ = std::make_unique<HttpServer>(places, options, max_connections, log_);
    address_ = *server_->Listen(*Address::Numeric("127.0.0.1", 0), std::move(tls));
  }

  ~LoopbackServer() {
    while (server_->connections() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    thread_.Call([this] { server_.reset(); });
    thread_.Call([] {});  // the loop's turn in which the listener's last wait ends
  }

  HttpServer& server() { return *server_; }
  const Address& address() const { return address_; }

 private:
  LoopThread& thread_;
  Log log_{2, LogLevel::kOff};
  std::unique_ptr<HttpServer> server_;
  Address address_;
};

}  // namespace fathom
