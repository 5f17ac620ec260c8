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

struct Capability {
  bool answered = false;  // it spoke HTTP at all
  EngineReport report;    // without loads; the engine may stay unknown, and all numbers 0
};

// Returns by the deadline, with what was learned until then.
Task<Capability> AskCapability(Loop& loop, Resolver& resolver, const Worker& worker,
                               const Endpoint& endpoint, TimePoint deadline);

}  // namespace fathom
