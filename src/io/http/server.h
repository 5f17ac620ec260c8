// Listens, and distributes connections over the loops. A connection stays on its loop.
//
// Threads  Listen() before the loops run; Drain(), ReplaceTls() and the counts from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "base/log.h"
#include "io/http/server_connection.h"
#include "io/net/listener.h"
#include "io/net/loop.h"
#include "io/net/tls.h"

namespace fathom {

class HttpServer {
 public:
  // One handler per loop, so that handlers need no locks.
  struct Place {
    Loop* loop;
    HttpHandler* handler;
  };

  HttpServer(std::vector<Place> places, const ServerOptions& options, size_t max_connections,
             Log& log);

  // Binds at once and accepts as soon as the first loop runs. `tls` may be null.
  Result<Address> Listen(const Address& address, std::shared_ptr<const TlsServerContext> tls);

  // Frees the address soon; existing connections stay open. Any thread, once the loops run.
  void StopListening();

  // Applies to connections accepted from now on.
  void ReplaceTls(std::shared_ptr<const TlsServerContext> tls);

  // Closes connections that wait for a next request; the others close after their answer. New ones
  // are still accepted, so that they get an answer.
  void Drain();

  size_t connections() const { return connections_.load(std::memory_order_relaxed); }
  size_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Shard {
    Place place;
    std::unordered_set<ServerConnection*> open;  // accessed on its own loop only
  };

  void Accept(int fd);
  Task<void> Serve(Shard& shard, int fd, std::shared_ptr<const TlsServerContext> tls);

  std::vector<std::unique_ptr<Shard>> shards_;
  const ServerOptions options_;
  const size_t max_connections_;
  Log& log_;
  std::unique_ptr<Listener> listener_;
  size_t next_shard_ = 0;  // on the first loop only
  std::atomic<size_t> connections_{0};
  std::atomic<size_t> refused_{0};
  std::atomic<bool> draining_{false};
  std::mutex mutex_;
  std::shared_ptr<const TlsServerContext> tls_;  // guarded by mutex_
};

}  // namespace fathom
