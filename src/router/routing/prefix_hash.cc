#include "router/routing/prefix_hash.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace fathom {
namespace {

uint64_t Score(uint64_t prefix, const RankLabel& rank) {
  const std::array<uint64_t, 2> name = {rank.worker, rank.dp_rank};
  return XXH3_64bits_withSeed(name.data(), sizeof(name), prefix);
}

}  // namespace

uint64_t PrefixHash(std::span<const TokenId> tokens, size_t most, uint64_t seed) {
  const auto first = tokens.first(std::min(most, tokens.size()));
  return XXH3_64bits_withSeed(first.data(), first.size_bytes(), seed);
}

size_t PlaceByPrefix(uint64_t prefix, std::span<const RankView> ranks, double bound,
                     const OtherRanks& others) {
  uint64_t requests = 1 + others.requests;  // with the one to place
  for (const RankView& rank : ranks) requests += rank.load.requests;
  // Rounded up, otherwise an evenly loaded fleet would have no rank below the bound.
  const double mean =
      static_cast<double>(requests) / static_cast<double>(ranks.size() + others.count);
  const double most = std::ceil(bound * mean);
  size_t best = ranks.size();
  uint64_t best_score = 0;
  size_t idlest = 0;  // used if all are above the bound (possible when it is below 1)
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].load.requests < ranks[idlest].load.requests) idlest = i;
    if (ranks[i].load.requests + 1.0 > most) continue;
    const uint64_t score = Score(prefix, ranks[i].rank);
    if (best < ranks.size() && score <= best_score) continue;
    best = i;
    best_score = score;
  }
  return best < ranks.size() ? best : idlest;
}

}  // namespace fathom
