// Runs a mock engine behind a real HTTP server, on threads of its own.
//
// Threads  Everything from one thread; counts from any.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "http/server.h"
#include "mock/mock_engine.h"
#include "mock/mock_options.h"
#include "net/address.h"
#include "net/loop.h"

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

  // Breaks off what is being answered, closes every connection and joins the threads.
  void Stop();

 private:
  struct Place {
    Place(const MockOptions& options, MockCounts& counts) : engine(loop, options, counts) {}
    Loop loop;
    MockEngine engine;
    std::thread thread;
  };

  MockServer(const MockOptions& options, size_t threads, Log& log);
  bool CloseIfIdle();

  MockCounts counts_;
  std::vector<std::unique_ptr<Place>> places_;
  std::unique_ptr<HttpServer> server_;
  Address address_;
  std::string name_;
};

}  // namespace fathom
