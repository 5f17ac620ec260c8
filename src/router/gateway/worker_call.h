// A question to a worker, on a connection that is kept for the next one, and its complete answer.
//
// Reuse   Connections are kept in a separate pool from those of requests. If the worker closes a
//         kept connection while it is being used, it is replaced once, without an error.
// Threads One loop.
#pragma once

#include <string>
#include <string_view>

#include "io/http/connection_pool.h"
#include "io/http/fetch.h"
#include "router/discovery/directory.h"
#include "router/fleet/worker.h"

namespace fathom {

class WorkerCalls {
 public:
  WorkerCalls(Loop& loop, Resolver& resolver, const Directory& directory)
      : loop_(loop), resolver_(resolver), directory_(directory), pool_(loop, kKept, kKeptFor) {}

  // Posts JSON, with the worker's own key. Errors are the worker's: refused, timed out, broken off,
  // longer than `max_answer`, not HTTP. Worker and body must stay valid until the task has ended.
  Task<Result<FetchAnswer>> Post(const Worker& worker, std::string_view path, std::string_view body,
                                 size_t max_answer, TimePoint deadline);

 private:
  static constexpr size_t kKept = 4;  // per worker
  // Shorter than any engine's keep-alive (uvicorn: 5 s).
  static constexpr Duration kKeptFor = std::chrono::seconds(4);

  Task<Result<std::unique_ptr<ClientConnection>>> Open(WorkerId id, TimePoint deadline);
  Task<Result<FetchAnswer>> Converse(ClientConnection& connection, std::string_view head,
                                     std::string_view body, size_t max_answer, TimePoint deadline);

  Loop& loop_;
  Resolver& resolver_;
  const Directory& directory_;
  ConnectionPool pool_;
};

}  // namespace fathom
