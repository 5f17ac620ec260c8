// Where does this worker publish its events?
//
// In this order: the operator's worker entry; the engine's report (vLLM /kv_event_sources, SGLang
// /server_info); polling, if the engine answers polls (TensorRT-LLM); vLLM's convention, port 5557
// plus the rank on the worker's host.
//
// The engine is queried in every case, because only it reports the number of ranks.
//
// A poll takes events out of the engine. With other routers in front of it, one that has such a
// path is polled only when it is this router's turn, or not at all if another one polls it.
//
// Threads  The intake's loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/net/task.h"
#include "router/events/event_source.h"
#include "router/events/intake_context.h"
#include "router/events/poll_stream.h"

namespace fathom {

struct SourcePlan {
  std::vector<EventSource> sources;           // endpoints to connect to
  std::optional<PollStream::Beginning> poll;  // poll instead; holds the first answer, whose events
                                              // must not be lost
  std::string problem;         // why no source was found, for operators; with the fix
  bool publisher_off = false;  // no source, because the engine reports its publisher as off
  bool final = false;          // the worker has answered: another query would return the same
};

Task<SourcePlan> FindSources(IntakeContext& context, const StreamOwner& owner);

// The number of ranks by the labels of vLLM's metrics: engine="0", engine="1", ... At least 1.
uint32_t RanksInMetrics(std::string_view metrics);

}  // namespace fathom
