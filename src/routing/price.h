// What would it cost to serve this prompt on that rank?
//
// Time until the first token, and how much everybody else is slowed: in tokens of context being
// decoded, so that ranks with different block sizes compare. Pure.
//
//   fresh    = prompt - credit * trust * cached, or what is believed to be there if that is more
//   work     = PrefillWork(fresh, cached), times the rank's slowness
//   prefill  = backlog + work * (1 + disturbance + pressure) + eviction * evicted
//   decode   = context there + prompt tokens that nobody keeps there yet
//   cost     = prefill_scale * prefill + decode + active_request * requests
//
// Disturbance: a prefill also delays what is being decoded beside it. Pressure: the number of
// requests that wait, in the router and on the ranks, for each rank of the fleet. While nobody
// waits, what matters is our own first token; when everybody waits, each unit of work delays them
// all, and saving work is worth more than a short queue.
#pragma once

#include <array>
#include <cstdint>

#include "fleet/rank_load.h"
#include "index/holding.h"
#include "index/prefix_index.h"
#include "routing/weights.h"

namespace fathom {

// Everything about a candidate that goes into its price.
struct RankView {
  RankLabel rank;
  // Leading tokens of the prompt that events say are there, in this tier or a faster one.
  std::array<uint32_t, kTiers> cached{};
  uint32_t block_size = 0;  // 0: not known
  bool pairs = false;       // BlockShape's
  uint64_t held = 0;        // tokens in its cache
  uint64_t capacity = 0;    // tokens that it can hold; 0: not known
  uint32_t believed = 0;    // leading tokens that were sent there just now
  uint32_t shared = 0;      // leading tokens that running requests keep there
  double trust = 1;         // in what events say, and in what is believed
  double slowness = 1;      // beside the fleet
  RankLoad::View load;
  friend bool operator==(const RankView&, const RankView&) = default;
};

struct PromptView {
  uint32_t tokens = 0;
  double pressure = 0;
  friend bool operator==(const PromptView&, const PromptView&) = default;
};

struct Price {
  double reused = 0;   // tokens that need not be prefilled
  double work = 0;     // of the rest
  double evicted = 0;  // tokens that make room for them
  double prefill = 0;
  double decode = 0;
  double cost = 0;
  friend bool operator==(const Price&, const Price&) = default;
};

Price PriceOf(const PromptView& prompt, const RankView& rank, const Weights& weights);

}  // namespace fathom
