#include "text/model/prefix_cache.h"

#include <algorithm>
#include <memory>
#include <ranges>
#include <utility>

namespace fathom {

KnownPrefix PrefixCache::Find(std::span<const PromptParts::Place> places, uint64_t seed) {
  for (const PromptParts::Place& place : std::views::reverse(places)) {
    const KnownPrefix found = cache_.Find(KeyOf(place, seed));
    if (found.keys) return {found.keys, std::min(found.tokens, place.tokens)};
  }
  return {};
}

void PrefixCache::Put(std::span<const PromptParts::Place> places, uint64_t seed, size_t known,
                      PrefixKeys keys) {
  const auto fresh = std::ranges::upper_bound(places, known, {}, &PromptParts::Place::tokens);
  const auto count = static_cast<size_t>(places.end() - fresh);
  if (count == 0) return;
  const auto shared = std::make_shared<const PrefixKeys>(std::move(keys));
  for (size_t i = 0; i < count; ++i) {
    // Each of them can be the last that holds it, and is counted as if it were.
    if (i >= kAtEachEnd && i + kAtEachEnd < count) continue;
    const PromptParts::Place& place = *(fresh + static_cast<ptrdiff_t>(i));
    cache_.Put(KeyOf(place, seed), {shared, place.tokens}, shared->bytes());
  }
}

}  // namespace fathom
