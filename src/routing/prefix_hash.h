// Where do prompts that begin like this one go, when nobody knows what the caches hold?
//
// Consistent hashing with bounded loads: every prefix has its own order of ranks (by rendezvous
// hashing, so that a rank more or less moves few prefixes), and goes to the first of them that is
// not loaded beyond `bound` times the mean. An honest baseline: it needs no events.
#pragma once

#include <cstdint>
#include <span>

#include "routing/price.h"
#include "tokens/token.h"

namespace fathom {

// Of the first `most` tokens; two prompts that agree there go together.
uint64_t PrefixHash(std::span<const TokenId> tokens, size_t most, uint64_t seed);

// Position of the rank; there must be at least one.
size_t PlaceByPrefix(uint64_t prefix, std::span<const RankView> ranks, double bound);

}  // namespace fathom
