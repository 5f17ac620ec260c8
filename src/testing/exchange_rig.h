// The gateway between a raw client and raw workers, for tests that control every byte and its time.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "router/gateway/gateway.h"
#include "testing/loopback_server.h"
#include "testing/raw_socket.h"

namespace fathom {

inline constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    "transfer-encoding: chunked\r\n\r\n";
inline constexpr std::string_view kLastChunkText = "0\r\n\r\n";

inline std::string Chunked(std::string_view text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

// The chunks of an answer whose head has been read, up to the last.
inline std::vector<std::string> ReadChunks(RawSocket& client) {
  std::vector<std::string> chunks;
  for (;;) {
    const std::string size = client.ReadUntil("\r\n");
    if (size.empty()) {
      chunks.push_back("(cut off)");
      return chunks;
    }
    const size_t bytes = std::stoul(size, nullptr, 16);
    std::string chunk = client.Read(bytes + 2);
    if (bytes == 0) return chunks;
    chunks.push_back(chunk.substr(0, bytes));
  }
}

class ExchangeRig : public testing::Test {
 protected:
  explicit ExchangeRig(const BreakerOptions& breaker = {}, ModelSlice slice = {})
      : fleet_(breaker, Fleet::kMaxWorkers, std::move(slice)) {
    options_.session_ttl = Duration::zero();
    options_.steering.mode = RouterMode::kRoundRobin;
  }

  // Not in the destructor: scripts of workers may use members of the derived fixture.
  void TearDown() override {
    server_.reset();
    thread_.Call([this] { gateway_.reset(); });
    thread_.Stop();
    for (const auto& worker : workers_) worker->Stop();
  }

  // After what the desk still does: it pauses once more behind the last page.
  void StopPages() {
    struct Script {
      static Task<void> Run(Loop& loop) {
        co_await loop.Sleep(std::chrono::milliseconds(5));
        loop.Stop();
      }
    };
    page_loop_.Post([this] { Spawn(Script::Run(page_loop_)); });
  }

  // A worker that answers each request on a connection by the script, until the script returns
  // false.
  void AddWorker(std::function<bool(RawSocket&, const std::string& head)> script) {
    workers_.push_back(std::make_unique<ScriptedServer>([script](RawSocket& socket) {
      for (;;) {
        std::string head = socket.ReadUntil("\r\n\r\n");
        if (!head.ends_with("\r\n\r\n")) return;
        const size_t length = head.find("content-length: ");
        if (length != std::string::npos) socket.Read(std::stoul(head.substr(length + 16)));
        if (!script(socket, head)) return;
      }
    }));
    WorkerRequest request;
    request.url = workers_.back()->url();
    const WorkerId id = (*directory_.Join(request))->id();
    Fleet::ModelReport report;
    report.any_model = true;
    fleet_.SetModels(id, report);
    fleet_.SetHealthy(id);
  }
  // Sends `wire` and closes.
  void AddWorkerThatSends(std::string wire) {
    AddWorker([wire](RawSocket& socket, const std::string&) {
      socket.Send(wire);
      return false;
    });
  }
  void AddGoodWorker() {
    AddWorker([](RawSocket& socket, const std::string&) {
      return socket.Send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood");
    });
  }

  RawSocket Client() {
    if (!server_) {
      context_ = std::make_unique<GatewayContext>(options_, ModelLibrary(), fleet_, directory_,
                                                  resolver_, registry_, log_, 1);
      desk_ = std::make_unique<PageDesk>(*context_, page_loop_);
      gateway_ = std::make_unique<Gateway>(*context_, thread_.loop(), *desk_, 1);
      server_ = std::make_unique<LoopbackServer>(thread_, *gateway_);
    }
    return RawSocket(server_->address());
  }

  static std::string RequestTo(std::string_view path, std::string_view version = "1.1",
                               std::string_view more = "") {
    return fmt::format("POST {} HTTP/{}\r\nhost: x\r\n{}content-length: 2\r\n\r\n{{}}", path,
                       version, more);
  }
  static std::string Request(std::string_view version = "1.1", std::string_view more = "") {
    return RequestTo("/v1/chat/completions", version, more);
  }

  // The complete answer to one request on a connection that is closed after it.
  std::string Ask(std::string_view version = "1.1") {
    return AskFor("/v1/chat/completions", version);
  }
  std::string AskFor(std::string_view path, std::string_view version = "1.1") {
    RawSocket client = Client();
    client.Send(RequestTo(path, version, "connection: close\r\n"));
    return client.ReadToEnd();
  }

  GatewayOptions options_;
  Log log_{2, LogLevel::kOff};
  Loop control_;    // never runs: no worker is probed
  Loop page_loop_;  // runs only where a test lets it
  Resolver resolver_;
  Registry registry_;
  Fleet fleet_;
  Prober prober_{control_, resolver_, fleet_, ProbeOptions{}, log_};
  Directory directory_{fleet_, prober_, [](const std::string&) { return std::nullopt; }, log_};
  std::vector<std::unique_ptr<ScriptedServer>> workers_;
  LoopThread thread_;
  std::unique_ptr<GatewayContext> context_;
  std::unique_ptr<PageDesk> desk_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<LoopbackServer> server_;
};

}  // namespace fathom
