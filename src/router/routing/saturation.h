// Does this rank have room for one more request?
//
// A request that waits in an engine's queue can no longer be moved to a rank that becomes free; one
// that waits in the router can. Therefore a rank with enough queued work gets no further request.
#pragma once

#include <cstdint>

#include "router/routing/price.h"

namespace fathom {

// Limits that the engine reports; 0: unknown.
struct RankLimits {
  uint32_t batch_tokens = 0;  // at most, per step
  uint64_t kv_tokens = 0;     // capacity of its cache
  uint32_t max_running = 0;   // sequences
};

enum class Room : uint8_t {
  kFree,
  kShort,  // enough prefill is queued, or its cache is full
  kFull,   // it runs max_running sequences
};

// Assumed if the engine does not report batch_tokens.
constexpr uint32_t kUsualBatchTokens = 8192;

// `threshold`: how many steps of prefill may be queued on a rank; 0: no limit, and every rank is
// always kFree.
Room RoomFor(const PromptView& prompt, const RankView& rank, const RankLimits& limits,
             double threshold);

}  // namespace fathom
