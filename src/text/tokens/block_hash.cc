#include "text/tokens/block_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace fathom {

// Token ids and keys are hashed as they lie in memory.
static_assert(std::endian::native == std::endian::little);

uint64_t NamespaceSeed(std::string_view lora, std::string_view salt) {
  uint64_t seed = kKeySeed;
  if (!lora.empty()) seed += XXH3_64bits_withSeed(lora.data(), lora.size(), 0);
  if (!salt.empty()) seed += XXH3_64bits_withSeed(salt.data(), salt.size(), 1);
  return seed;
}

uint64_t LocalHash(std::span<const TokenId> block, uint64_t seed) {
  return XXH3_64bits_withSeed(block.data(), block.size_bytes(), seed);
}

uint64_t LocalHash(std::span<const TokenId> block, std::span<const uint64_t> extra, uint64_t seed) {
  if (extra.empty()) return LocalHash(block, seed);
  std::vector<uint64_t> sorted(extra.begin(), extra.end());
  std::ranges::sort(sorted);
  std::vector<char> bytes(block.size_bytes() + sorted.size() * sizeof(uint64_t));
  std::memcpy(bytes.data(), block.data(), block.size_bytes());
  std::memcpy(bytes.data() + block.size_bytes(), sorted.data(), sorted.size() * sizeof(uint64_t));
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t ChainKey(uint64_t before, uint64_t local) {
  const uint64_t both[2] = {before, local};
  return XXH3_64bits_withSeed(both, sizeof(both), kKeySeed);
}

size_t BlockShape::BlocksIn(size_t tokens) const {
  if (size == 0) return 0;
  return pairs ? (tokens == 0 ? 0 : (tokens - 1) / size) : tokens / size;
}

size_t BlockShape::MostCached(size_t tokens) const {
  return size == 0 || tokens == 0 ? 0 : (tokens - 1) / size * size;
}

}  // namespace fathom
