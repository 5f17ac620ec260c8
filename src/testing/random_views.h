// Random candidates and weights for the property tests.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "router/routing/price.h"

namespace fathom {

// A share in hundredths, so that 0 and 1 are drawn, too.
inline double AnyShare() { return *rc::gen::resize(100, rc::gen::inRange(0, 101)) / 100.0; }

// Of several orders of magnitude, so that each part of a price is sometimes the largest.
inline uint32_t AnyTokens(uint32_t most) {
  const uint32_t end = most / *rc::gen::element(1u, 10u, 1000u) + 1;
  return *rc::gen::resize(100, rc::gen::inRange<uint32_t>(0, end));
}

inline RankLoad::View AnyLoad() {
  RankLoad::View load;
  load.queued = AnyTokens(200'000) * 1.25;
  load.backlog = load.queued * AnyShare();
  load.context = AnyTokens(2'000'000);
  load.requests = *rc::gen::inRange<uint32_t>(0, 300);
  load.waiting = *rc::gen::inRange<uint32_t>(0, load.requests + 1);
  return load;
}

inline RankView AnyRank(uint32_t number, uint32_t prompt) {
  RankView rank{.rank = {.worker = number + 1u, .dp_rank = 0}};
  uint32_t depth = 0;
  for (uint32_t& cached : rank.cached) {
    depth = std::max(depth, AnyTokens(prompt));
    cached = depth;
  }
  rank.block_size = 16;
  rank.capacity = AnyTokens(1'000'000);
  rank.held = AnyTokens(1'000'000);
  rank.believed = AnyTokens(prompt);
  rank.shared = AnyTokens(prompt);
  rank.trust = AnyShare();
  rank.slowness = 1 + AnyTokens(10) * 0.5;
  rank.load = AnyLoad();
  return rank;
}

inline Weights AnyWeights() {
  Weights weights;
  weights.overlap_credit = AnyShare();
  weights.prefill_scale = AnyTokens(1000) * 0.5;
  weights.active_request = AnyTokens(1000);
  weights.host_hit = AnyShare();
  weights.disk_hit = weights.host_hit * AnyShare();
  weights.temperature = *rc::gen::element(0.0, 0.0, 1e-6, 0.1, 1.0, 50.0);
  return weights;
}

inline PromptView AnyPrompt() {
  return {.tokens = AnyTokens(200'000), .pressure = AnyTokens(100) * 0.25};
}

inline std::vector<RankView> AnyRanks(uint32_t prompt) {
  std::vector<RankView> ranks;
  const uint32_t count = *rc::gen::inRange<uint32_t>(1, 9);
  for (uint32_t i = 0; i < count; ++i) {
    // Often equal to the one before, because ties matter.
    const bool twin = i > 0 && *rc::gen::inRange(0, 3) == 0;
    ranks.push_back(twin ? ranks.back() : AnyRank(i, prompt));
    ranks.back().rank.worker = i + 1;
  }
  return ranks;
}

}  // namespace fathom
