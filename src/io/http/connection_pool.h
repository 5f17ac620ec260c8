// Idle connections to workers, waiting for their next request, on one loop.
//
// Reuse   Last in, first out, so that the most recently used is reused and the rest can expire.
// Health  A connection that its worker closes while idle leaves the pool at once. With an
//         `idle_timeout` below the worker's own keep-alive the pool closes first, so that the two
//         do not race.
// Bounds  At most `max_idle` per worker, closed after `idle_timeout`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "io/http/client_connection.h"

namespace fathom {

class ConnectionPool {
 public:
  ConnectionPool(Loop& loop, size_t max_idle, Duration idle_timeout)
      : loop_(loop), max_idle_(max_idle), idle_timeout_(idle_timeout) {}

  // A connection without pending input or hang-up at this moment, or nullptr.
  std::unique_ptr<ClientConnection> Take(WorkerId worker);
  void Put(WorkerId worker, std::unique_ptr<ClientConnection> connection);
  // Closes the worker's idle connections.
  void Drop(WorkerId worker) { idle_.erase(worker); }
  // Closes connections idle for longer than idle_timeout. Call it about once a second.
  void Sweep();

  size_t idle() const;

  // Is told whose idle connection its peer has closed, or has sent something on.
  void OnLost(std::function<void(WorkerId)> tell) { tell_lost_ = std::move(tell); }

 private:
  void Lose(WorkerId worker, ClientConnection& connection);

  Loop& loop_;
  const size_t max_idle_;
  const Duration idle_timeout_;
  std::function<void(WorkerId)> tell_lost_;
  std::unordered_map<WorkerId, std::vector<std::unique_ptr<ClientConnection>>> idle_;
};

}  // namespace fathom
