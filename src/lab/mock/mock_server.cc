#include "lab/mock/mock_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "base/check.h"

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

Result<void> MockServer::AddPlace(const MockOptions& options) {
  auto place = std::make_unique<Place>();
  if (options.profile != kPaced) {
    TRY(place->ranks, EngineRanks::Create(place->loop, options));
  }
  place->engine = std::make_unique<MockEngine>(place->loop, options, counts_, place->ranks.get());
  place->engine->SetFaultListener(
      [this, from = place.get()](std::string_view body) { SpreadFaults(*from, body); });
  places_.push_back(std::move(place));
  return {};
}

Result<std::unique_ptr<MockServer>> MockServer::Start(const MockOptions& options,
                                                      const Address& address, size_t threads,
                                                      Log& log) {
  std::unique_ptr<MockServer> server(new MockServer);
  auto listening = server->Listen(options, address, threads, log);
  if (!listening) {
    server->server_.reset();
    server->places_.clear();  // no thread runs yet: there is nothing to stop
    return std::unexpected(std::move(listening).error());
  }
  server->address_ = *listening;
  server->name_ =
      options.name.empty() ? fmt::format("mock-{}", server->address_.port()) : options.name;
  for (const auto& place : server->places_) {
    place->engine->Rename(server->name_);
    place->thread = std::thread([&loop = place->loop] { loop.Run(); });
  }
  return server;
}

Result<Address> MockServer::Listen(const MockOptions& options, const Address& address,
                                   size_t threads, Log& log) {
  const size_t loops = options.profile == kPaced ? std::max<size_t>(threads, 1) : 1;
  MockOptions mine = options;
  const std::string where = address.ToString();
  if (!mine.ledger) mine.ledger = std::make_shared<PrefixLedger>();
  if (!mine.responses) mine.responses = std::make_shared<ResponseStore>();
  mine.kv_events.host = where.substr(0, where.rfind(':'));
  std::vector<HttpServer::Place> handlers;
  for (size_t i = 0; i < loops; ++i) {
    mine.seed = options.seed + i;
    TRY_VOID(AddPlace(mine));
    handlers.push_back({&places_.back()->loop, places_.back()->engine.get()});
  }
  const size_t connections = options.refuse ? 0 : kMaxConnections;
  server_ = std::make_unique<HttpServer>(handlers, ServerOptions{}, connections, log);
  return server_->Listen(address, nullptr);
}

// To the loops that did not hear of it themselves. Whoever asks is answered before they have.
void MockServer::SpreadFaults(const Place& from, std::string_view body) {
  for (const auto& place : places_) {
    if (place.get() == &from) continue;
    place->loop.Post([engine = place->engine.get(), body = std::string(body)] {
      CHECK(engine->AdoptFaults(body).has_value());
    });
  }
}

EngineStatistics MockServer::statistics() const {
  if (!places_.empty() && places_.front()->ranks) return places_.front()->ranks->Statistics();
  EngineStatistics paced;
  paced.running = counts_.in_flight.load(std::memory_order_relaxed);
  return paced;
}

void MockServer::AdoptFaults(std::string_view body) {
  for (const auto& place : places_) {
    CallOn(place->loop,
           [body, &engine = *place->engine] { CHECK(engine.AdoptFaults(body).has_value()); });
  }
}

void MockServer::FallSilent() {
  for (const auto& place : places_) {
    CallOn(place->loop, [&engine = *place->engine] { engine.Silence(); });
  }
  server_->StopListening();
  server_->Drain();
}

void MockServer::AbortRunning() {
  for (const auto& place : places_) {
    CallOn(place->loop, [&engine = *place->engine] { engine.AbortRunning(); });
  }
}

void MockServer::AbortNew() {
  for (const auto& place : places_) {
    CallOn(place->loop, [&engine = *place->engine] { engine.AbortNew(); });
  }
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
      place->loop.Post([&engine = *place->engine] { engine.BreakOff(); });
    }
    if (CloseIfIdle()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const auto& place : places_) {
    if (place->ranks) CallOn(place->loop, [&ranks = *place->ranks] { ranks.StopFeed(); });
    CallOn(place->loop, [] {});  // the turn in which what the listener waited for ends
    place->loop.Stop();
    place->thread.join();
  }
  places_.clear();
}

}  // namespace fathom
