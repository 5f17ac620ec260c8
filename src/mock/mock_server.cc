#include "mock/mock_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>

namespace fathom {
namespace {

constexpr size_t kMaxConnections = 100'000;

// Calls `work` on the loop and waits for it.
template <class Work>
void CallOn(Loop& loop, Work work) {
  std::promise<void> done;
  loop.Post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace

MockServer::MockServer(const MockOptions& options, size_t threads, Log& log) {
  std::vector<HttpServer::Place> handlers;
  MockOptions mine = options;
  for (size_t i = 0; i < std::max<size_t>(threads, 1); ++i) {
    mine.seed = options.seed + i;
    places_.push_back(std::make_unique<Place>(mine, counts_));
    handlers.push_back({&places_.back()->loop, &places_.back()->engine});
  }
  server_ = std::make_unique<HttpServer>(handlers, ServerOptions{}, kMaxConnections, log);
}

Result<std::unique_ptr<MockServer>> MockServer::Start(const MockOptions& options,
                                                      const Address& address, size_t threads,
                                                      Log& log) {
  std::unique_ptr<MockServer> server(new MockServer(options, threads, log));
  auto listening = server->server_->Listen(address, nullptr);
  if (!listening) {
    server->server_.reset();
    server->places_.clear();  // no thread runs yet: there is nothing to stop
    return std::unexpected(std::move(listening).error());
  }
  server->address_ = *listening;
  server->name_ =
      options.name.empty() ? fmt::format("mock-{}", server->address_.port()) : options.name;
  for (const auto& place : server->places_) {
    place->engine.Rename(server->name_);
    place->thread = std::thread([&loop = place->loop] { loop.Run(); });
  }
  return server;
}

// A connection can only be accepted on the first loop, so it is looked at there, and after every
// other loop has done what it was asked to.
bool MockServer::CloseIfIdle() {
  for (const auto& place : places_) CallOn(place->loop, [] {});
  bool closed = false;
  CallOn(places_.front()->loop, [&] {
    closed = server_->connections() == 0;
    if (closed) server_.reset();
  });
  return closed;
}

void MockServer::Stop() {
  if (places_.empty()) return;
  for (;;) {
    server_->Drain();
    for (const auto& place : places_) {
      place->loop.Post([&engine = place->engine] { engine.BreakOff(); });
    }
    if (CloseIfIdle()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const auto& place : places_) {
    CallOn(place->loop, [] {});  // the turn in which what the listener waited for ends
    place->loop.Stop();
    place->thread.join();
  }
  places_.clear();
}

}  // namespace fathom
