// What is this worker, before anybody sends it a request: which engine, with which blocks?
//
// One look at its own pages, and for TensorRT-LLM at most one token of work: it knows its blocks
// only after its first iteration.
//
// Threads  On the loop.
// Memory   One answer at a time, of at most 4 MiB.
// Errors   None: what a page does not say, or says too late, stays unknown.
#pragma once

#include "fleet/engine_report.h"
#include "fleet/worker.h"
#include "http/client_connection.h"

namespace fathom {

// Returns by the deadline, with what was learned until then, without loads.
Task<EngineReport> AskCapability(Loop& loop, Resolver& resolver, const Worker& worker,
                                 const Endpoint& endpoint, TimePoint deadline);

}  // namespace fathom
