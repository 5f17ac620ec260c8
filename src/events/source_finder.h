// Where are this worker's events?
//
// In this order: what the operator wrote in its entry; what the engine reports (vLLM
// /kv_event_sources, SGLang /server_info); an engine that answers polls (TensorRT-LLM); vLLM's
// convention, port 5557 plus the rank on the worker's host.
//
// How many ranks there are only the engine knows, so it is asked in any case.
//
// Threads  The intake's loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "events/event_source.h"
#include "events/intake_context.h"
#include "net/task.h"

namespace fathom {

struct SourcePlan {
  std::vector<EventSource> sources;  // to connect to
  std::optional<std::string> poll;   // poll instead; the first answer, which must not get lost
  std::string problem;               // why there is nothing, for operators; with the fix
  bool publisher_off = false;        // because the engine says so
  bool final = false;                // the worker has answered: asking again would say the same
};

Task<SourcePlan> FindSources(IntakeContext& context, const StreamOwner& owner);

// Ranks by the labels of vLLM's metrics: engine="0", engine="1", ... At least 1.
uint32_t RanksInMetrics(std::string_view metrics);

}  // namespace fathom
