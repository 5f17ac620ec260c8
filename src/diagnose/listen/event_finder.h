// Where are the KV events of the engine at this URL?
#pragma once

#include <string>
#include <vector>

#include "io/http/fetch.h"
#include "router/events/event_source.h"

namespace fathom {

struct FoundEvents {
  std::vector<EventSource> sources;
  bool polled = false;       // it is TensorRT-LLM, to be polled at the same URL
  std::string first_answer;  // of the poll that found that out: it is drained, so it must be used
  std::string note;          // how it was found, one line
};

// Asks vLLM's page, then SGLang's, then looks for TensorRT-LLM's, and at last falls back on the
// port of vLLM's convention.
//
// Errors  Nobody answers; the engine's KV events are off; or it is TensorRT-LLM and `drain` is
//         false: to poll it takes events away from whoever else polls it, so it is never tried
//         without being asked for.
Task<Result<FoundEvents>> FindEvents(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                     std::string api_key, bool drain);

// One poll of TensorRT-LLM.
Task<Result<FetchAnswer>> PollEvents(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                     std::string api_key);

}  // namespace fathom
