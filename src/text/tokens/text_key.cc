#include "text/tokens/text_key.h"

#include <array>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fathom {
namespace {

TextKey HashOf(const void* data, size_t size, uint64_t secret) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(data, size, secret);
  return {hash.low64, hash.high64};
}

}  // namespace

TextKey KeyOfText(std::string_view text, uint64_t secret) {
  return HashOf(text.data(), text.size(), secret);
}

TextKey ChainText(const TextKey& before, const TextKey& next, uint64_t secret) {
  const std::array<uint64_t, 4> both = {before.low, before.high, next.low, next.high};
  return HashOf(both.data(), sizeof(both), secret);
}

}  // namespace fathom
