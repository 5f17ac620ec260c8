// Has this rank room for one more request?
//
// A request that waits in an engine's queue can no longer be moved to a rank that becomes free; one
// that waits in the router can. So a rank that has enough to do gets nothing more while it has.
#pragma once

#include <cstdint>

#include "routing/price.h"

namespace fathom {

// What an engine reports of itself; 0: not known.
struct RankLimits {
  uint32_t batch_tokens = 0;  // that one step computes at most
  uint64_t kv_tokens = 0;     // that its cache holds
  uint32_t max_running = 0;   // sequences
};

enum class Room : uint8_t {
  kFree,
  kShort,  // enough prefill is queued there, or its cache is full
  kFull,   // it runs as many sequences as it can
};

// What a step computes where the engine does not say.
constexpr uint32_t kUsualBatchTokens = 8192;

// `threshold`: how many steps of prefill may be queued on a rank; 0: any number, and nothing is
// ever short or full.
Room RoomFor(const PromptView& prompt, const RankView& rank, const RankLimits& limits,
             double threshold);

}  // namespace fathom
