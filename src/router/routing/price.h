// What would it cost to serve this prompt on that rank?
//
// The time until the first token, and the delay for the other requests there. The unit is tokens of
// context being decoded, so that ranks with different block sizes compare. Pure.
//
//   fresh    = prompt - credit * trust * cached, or the believed tokens if they are more
//   work     = PrefillWork(fresh, cached), times the rank's slowness
//   prefill  = backlog + work * (1 + disturbance + pressure) + eviction * evicted
//   decode   = context there + prompt tokens that no running request holds there
//   cost     = prefill_scale * prefill + decode + active_request * requests
//
// Disturbance: a prefill also delays the requests that are being decoded beside it. Pressure: the
// number of waiting requests, in the router and on the ranks, per rank of the fleet. While no
// request waits, only the new request's first token matters. When many wait, each unit of work
// delays all of them, and saving work is worth more than a short queue.
#pragma once

#include <array>
#include <cstdint>

#include "router/fleet/rank_load.h"
#include "router/index/holding.h"
#include "router/index/prefix_index.h"
#include "router/routing/weights.h"

namespace fathom {

// All inputs of a candidate's price.
struct RankView {
  RankLabel rank;
  uint32_t position = 0;  // among all candidates
  // Leading tokens of the prompt that are cached according to events, in this tier or a faster one.
  std::array<uint32_t, kTiers> cached{};
  uint32_t block_size = 0;  // 0: unknown
  bool pairs = false;       // BlockShape's
  uint64_t held = 0;        // tokens in its cache
  uint64_t capacity = 0;    // tokens that it can hold; 0: unknown
  uint32_t believed = 0;    // leading tokens of prompts recently sent there
  uint32_t text = 0;        // of a prompt by its text: leading values of prompts sent there
  uint32_t shared = 0;      // leading tokens that running requests hold there
  double trust = 1;         // factor for `cached` and `believed`
  double slowness = 1;      // relative to the fleet
  RankLoad::View load;

  // A cache that takes so many tokens without evicting any; the largest number: unknown.
  void SetFree(uint64_t tokens) {
    const bool known = tokens != ~uint64_t{0};
    capacity = known ? tokens + 1 : 0;  // a capacity of 0 would be unknown
    held = known ? 1 : 0;
  }
  friend bool operator==(const RankView&, const RankView&) = default;
};

struct PromptView {
  uint32_t tokens = 0;
  double pressure = 0;
  friend bool operator==(const PromptView&, const PromptView&) = default;
};

struct Price {
  double reused = 0;   // tokens that need not be prefilled
  double work = 0;     // of the other tokens
  double evicted = 0;  // cached tokens removed to make room
  double prefill = 0;
  double decode = 0;
  double cost = 0;
  friend bool operator==(const Price&, const Price&) = default;
};

Price PriceOf(const PromptView& prompt, const RankView& rank, const Weights& weights);

}  // namespace fathom
