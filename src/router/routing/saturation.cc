#include "router/routing/saturation.h"

namespace fathom {

Room RoomFor(const PromptView& prompt, const RankView& rank, const RankLimits& limits,
             double threshold) {
  // An idle rank accepts any prompt, otherwise a prompt larger than a limit would wait forever.
  if (threshold <= 0 || rank.load.requests == 0) return Room::kFree;
  if (limits.max_running != 0 && rank.load.requests >= limits.max_running) return Room::kFull;
  const double batch = limits.batch_tokens != 0 ? limits.batch_tokens : kUsualBatchTokens;
  if (rank.load.backlog >= threshold * batch) return Room::kShort;
  const uint64_t needed = prompt.tokens > rank.shared ? prompt.tokens - rank.shared : 0;
  // A prompt that never fits is left for the engine to refuse; waiting for room would block all
  // requests behind it.
  const bool fits = limits.kv_tokens == 0 || needed > limits.kv_tokens ||
                    rank.load.context + needed <= limits.kv_tokens;
  return fits ? Room::kFree : Room::kShort;
}

}  // namespace fathom
