// What is this worker, before it receives a request: which engine, with which block size?
//
// The engine's own pages are read once, all at the same time. TensorRT-LLM reports its block size
// only after its first iteration, so it may be asked for one token of work.
//
// Threads  On the loop.
// Memory   Three answers at a time, of at most 4 MiB each.
// Errors   None: a value that a page does not contain, or that comes too late, stays unknown.
#pragma once

#include "engine/engine_report.h"
#include "io/http/client_connection.h"
#include "router/fleet/worker.h"

namespace fathom {

// Returns by the deadline, with the values learned so far, without loads.
Task<EngineReport> AskCapability(Loop& loop, Resolver& resolver, const Worker& worker,
                                 std::shared_ptr<const Endpoint> endpoint, TimePoint deadline);

}  // namespace fathom
