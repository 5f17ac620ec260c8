// What would an index have been told and asked during the hour of a trace?
//
// Every request is a query with all its keys; then a rank gets it, and what that rank's cache
// evicts and stores for it follows, as the engine would publish it. The caches are the mock
// engine's own (mock/block_pool), one request after the other. A prompt that does not fit a cache
// is only asked.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/bench/operation_list.h"
#include "lab/replay/trace.h"

namespace fathom {

struct TraceOperationsPlan {
  uint32_t ranks = 8;
  uint32_t blocks = 16384;   // that each rank's cache can hold
  uint32_t block_size = 16;  // tokens; divides kTokensPerTraceId
  uint32_t repeat = 1;       // times that the trace is played, each time with ids of its own
  bool generated = false;    // whether the blocks of the answers are stored too, one by one
  enum class Assign : uint8_t {
    kRoundRobin,
    kSticky,  // where the longest known prefix went last, if it is more than half; else in turn
  };
  Assign assign = Assign::kRoundRobin;
};

OperationList OperationsOf(const std::vector<TraceRequest>& trace, const TraceOperationsPlan& plan);

}  // namespace fathom
