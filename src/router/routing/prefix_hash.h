// Which rank gets the prompts with this prefix, when the contents of the caches are unknown?
//
// Consistent hashing with bounded loads: every prefix has its own order of ranks (by rendezvous
// hashing, so that adding or removing a rank moves few prefixes), and goes to the first of them
// whose load is not above `bound` times the mean. A useful baseline: it needs no events.
#pragma once

#include <cstdint>
#include <span>

#include "router/routing/price.h"
#include "text/tokens/token.h"

namespace fathom {

// Hash of the first `most` tokens; prompts that are equal there go to the same rank.
uint64_t PrefixHash(std::span<const TokenId> tokens, size_t most, uint64_t seed);

// Ranks that count for the mean load, and cannot be chosen.
struct OtherRanks {
  size_t count = 0;
  uint64_t requests = 0;
};

// Position of the rank. Requires at least one.
size_t PlaceByPrefix(uint64_t prefix, std::span<const RankView> ranks, double bound,
                     const OtherRanks& others = {});

}  // namespace fathom
