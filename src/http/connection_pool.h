// Connections to workers that wait for their next request, on one loop.
//
// Reuse   Last in, first out, so that the warmest is used and the rest can age out.
// Health  A connection that its worker closes while it waits leaves the pool at once; one that is
//         older than the worker's own keep-alive is closed first, before the two can race.
// Bounds  At most `max_idle` per worker, closed after `idle_timeout`.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "http/client_connection.h"

namespace fathom {

class ConnectionPool {
 public:
  ConnectionPool(Loop& loop, size_t max_idle, Duration idle_timeout)
      : loop_(loop), max_idle_(max_idle), idle_timeout_(idle_timeout) {}

  // A connection that was quiet a moment ago, or nullptr.
  std::unique_ptr<ClientConnection> Take(WorkerId worker);
  void Put(WorkerId worker, std::unique_ptr<ClientConnection> connection);
  // Closes what waits for that worker.
  void Drop(WorkerId worker) { idle_.erase(worker); }
  // Closes what has waited too long. Call it about once a second.
  void Sweep();

  size_t idle() const;

 private:
  void Lose(WorkerId worker, ClientConnection& connection);

  Loop& loop_;
  const size_t max_idle_;
  const Duration idle_timeout_;
  std::unordered_map<WorkerId, std::vector<std::unique_ptr<ClientConnection>>> idle_;
};

}  // namespace fathom
