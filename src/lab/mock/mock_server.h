// Runs a mock engine behind a real HTTP server, on threads of its own.
//
// A simulated engine's KV events leave it on sockets of their own (event_feed.h), on the same host.
//
// A paced engine answers on as many loops as it is given. A simulated one has one scheduler per
// rank that all its requests meet in, so it runs on one loop, whatever `threads` says.
//
// Threads  Everything from one thread; counts and statistics from any.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "io/http/server.h"
#include "io/net/address.h"
#include "io/net/loop.h"
#include "lab/mock/mock_engine.h"
#include "lab/mock/mock_options.h"

namespace fathom {

class MockServer {
 public:
  // Listens and serves when it returns. Port 0 picks a free one. `log` must outlive the server.
  static Result<std::unique_ptr<MockServer>> Start(const MockOptions& options,
                                                   const Address& address, size_t threads,
                                                   Log& log);
  ~MockServer() { Stop(); }
  MockServer(const MockServer&) = delete;
  MockServer& operator=(const MockServer&) = delete;

  const Address& address() const { return address_; }
  std::string url() const { return "http://" + address_.ToString(); }
  const std::string& name() const { return name_; }
  const MockCounts& counts() const { return counts_; }
  // Of all ranks; without a simulation only how many requests there are.
  EngineStatistics statistics() const;

  // As if the body had been posted to /mock/faults. The body must be valid.
  void AdoptFaults(std::string_view body);

  // Three ways of leaving that vLLM has. After each Stop() is still to be called.
  //
  // The listener is closed and idle connections with it; what is being answered says nothing more
  // and stays open.
  void FallSilent();
  // New requests get finish_reason "abort" and no tokens; what is being answered goes on.
  void AbortNew();
  // The same, but what is being answered ends now, with the tokens that it has.
  void AbortRunning();

  // Breaks off what is being answered, closes every connection and joins the threads.
  void Stop();

 private:
  struct Place {
    Loop loop;
    std::unique_ptr<EngineRanks> ranks;  // null: paced
    std::unique_ptr<MockEngine> engine;
    std::thread thread;
  };

  MockServer() = default;
  Result<Address> Listen(const MockOptions& options, const Address& address, size_t threads,
                         Log& log);
  Result<void> AddPlace(const MockOptions& options);
  void SpreadFaults(const Place& from, std::string_view body);
  bool CloseIfIdle();

  MockCounts counts_;
  std::vector<std::unique_ptr<Place>> places_;
  std::unique_ptr<HttpServer> server_;
  Address address_;
  std::string name_;
};

}  // namespace fathom
