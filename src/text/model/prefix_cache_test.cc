#include "text/model/prefix_cache.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using Place = PromptParts::Place;

Place At(uint64_t name, size_t tokens) { return {.key = {name, name}, .tokens = tokens}; }

PrefixKeys Keys(uint64_t first) {
  PrefixKeys keys;
  keys.chains.push_back({.shape = {16}, .keys = {first, 2, 3}});
  return keys;
}

TEST(PrefixCache, FindsTheDeepestPlaceThatIsKnown) {
  Gauge bytes;
  PrefixCache cache(1 << 20, 1, bytes);
  cache.Put(std::vector{At(1, 100), At(2, 200)}, 7, 0, Keys(1));
  const KnownPrefix found = cache.Find(std::vector{At(1, 100), At(2, 200), At(3, 300)}, 7);
  ASSERT_TRUE(found.keys);
  EXPECT_EQ(found.tokens, 200u);
  const KnownPrefix other = cache.Find(std::vector{At(1, 100), At(9, 250)}, 7);
  EXPECT_EQ(other.tokens, 100u) << "every place is kept, not only the deepest";
  EXPECT_FALSE(cache.Find(std::vector{At(9, 100)}, 7).keys);
}

TEST(PrefixCache, KeepsNamespacesApart) {
  Gauge bytes;
  PrefixCache cache(1 << 20, 1, bytes);
  cache.Put(std::vector{At(1, 100)}, 7, 0, Keys(1));
  EXPECT_FALSE(cache.Find(std::vector{At(1, 100)}, 8).keys);
}

TEST(PrefixCache, AddsOnlyThePlacesThatAreNew) {
  Gauge bytes;
  PrefixCache cache(1 << 20, 1, bytes);
  cache.Put(std::vector{At(1, 100)}, 7, 0, Keys(1));
  cache.Put(std::vector{At(1, 100), At(2, 200)}, 7, 100, Keys(2));
  EXPECT_EQ(cache.Find(std::vector{At(1, 100)}, 7).keys->chains[0].keys[0], 1u);
  EXPECT_EQ(cache.Find(std::vector{At(2, 200)}, 7).keys->chains[0].keys[0], 2u);
  const int64_t held = bytes.Value();
  cache.Put(std::vector{At(1, 100), At(2, 200)}, 7, 200, Keys(3));
  EXPECT_EQ(bytes.Value(), held);
}

TEST(PrefixCache, ClaimsNoMoreThanThePlaceHas) {
  Gauge bytes;
  PrefixCache cache(1 << 20, 1, bytes);
  cache.Put(std::vector{At(1, 300)}, 7, 0, Keys(1));
  EXPECT_EQ(cache.Find(std::vector{At(1, 100)}, 7).tokens, 100u);
}

TEST(PrefixCache, KeepsTheFirstPlacesAndTheLastOfALongPrompt) {
  Gauge bytes;
  PrefixCache cache(1 << 20, 1, bytes);
  std::vector<Place> places;
  for (size_t i = 1; i <= 100; ++i) places.push_back(At(i, i * 100));
  cache.Put(places, 7, 0, Keys(1));
  for (const uint64_t kept : {1, 2, 3, 4, 97, 98, 99, 100}) {
    EXPECT_TRUE(cache.Find(std::vector{At(kept, kept * 100)}, 7).keys) << kept;
  }
  EXPECT_FALSE(cache.Find(std::vector{At(50, 5000)}, 7).keys);
}

}  // namespace
}  // namespace fathom
