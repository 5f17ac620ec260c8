#include "text/model/token_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"

namespace fathom {
namespace {

SharedTokens Tokens(size_t count, TokenId first = 0) {
  return std::make_shared<const std::vector<TokenId>>(count, first);
}

TextKey Key(uint64_t i) {
  Random random(i);
  return {random.Next(), random.Next()};
}

TEST(TokenCache, FindsWhatWasPut) {
  Gauge bytes;
  TokenCache cache(1 << 20, bytes);
  EXPECT_EQ(cache.Find(Key(1)), nullptr);
  const SharedTokens tokens = Tokens(10);
  cache.Put(Key(1), tokens);
  EXPECT_EQ(cache.Find(Key(1)), tokens);
  EXPECT_EQ(cache.Find(Key(2)), nullptr);
  EXPECT_EQ(cache.Find({Key(1).low, Key(2).high}), nullptr) << "all 128 bits count";
  EXPECT_GE(bytes.Value(), 40);
}

TEST(TokenCache, KeepsOneOfTwoThatAreTheSame) {
  Gauge bytes;
  TokenCache cache(1 << 20, bytes);
  cache.Put(Key(1), Tokens(10));
  const int64_t held = bytes.Value();
  cache.Put(Key(1), Tokens(10));
  EXPECT_EQ(bytes.Value(), held);
}

TEST(TokenCache, LetsGoOfWhatWasUsedLeastRecently) {
  Gauge bytes;
  TokenCache cache(100'000, bytes);  // too small for a second shard
  for (uint64_t i = 0; i < 4; ++i) cache.Put(Key(i), Tokens(5000));
  EXPECT_NE(cache.Find(Key(0)), nullptr);
  cache.Put(Key(4), Tokens(5000));
  EXPECT_NE(cache.Find(Key(0)), nullptr);
  EXPECT_EQ(cache.Find(Key(1)), nullptr);
  EXPECT_NE(cache.Find(Key(2)), nullptr);
  cache.Put(Key(5), Tokens(20'000));  // takes the place of several
  EXPECT_NE(cache.Find(Key(5)), nullptr);
  EXPECT_EQ(cache.Find(Key(2)), nullptr);
  EXPECT_LE(bytes.Value(), 100'000);
}

TEST(TokenCache, StaysWithinItsBytesWhateverIsPut) {
  constexpr int64_t kMost = int64_t{20} << 20;
  Gauge bytes;
  TokenCache cache(kMost, bytes);
  Random random(3);
  for (uint64_t i = 0; i < 3000; ++i) {
    cache.Put(Key(i), Tokens(random.Below(20'000)));
    ASSERT_LE(bytes.Value(), kMost);
  }
  EXPECT_GT(bytes.Value(), kMost / 2) << "and makes use of them";
}

TEST(TokenCache, DoesNotEmptyItselfForWhatIsTooLarge) {
  Gauge bytes;
  TokenCache cache(10'000, bytes);
  cache.Put(Key(1), Tokens(10));
  cache.Put(Key(2), Tokens(2500));
  EXPECT_EQ(cache.Find(Key(2)), nullptr);
  EXPECT_NE(cache.Find(Key(1)), nullptr);
}

TEST(TokenCache, KeepsNothingWithoutRoom) {
  Gauge bytes;
  TokenCache cache(0, bytes);
  cache.Put(Key(1), Tokens(0));
  EXPECT_EQ(cache.Find(Key(1)), nullptr);
  EXPECT_EQ(bytes.Value(), 0);
}

TEST(TokenCache, HandsOutTokensThatOutliveTheirPlace) {
  Gauge bytes;
  TokenCache cache(10'000, bytes);
  cache.Put(Key(1), Tokens(2000, 42));
  const SharedTokens held = cache.Find(Key(1));
  cache.Put(Key(2), Tokens(2000));
  EXPECT_EQ(cache.Find(Key(1)), nullptr);
  EXPECT_EQ(held->back(), 42u);
}

TEST(TokenCache, CanBeUsedFromManyThreads) {
  Gauge bytes;
  TokenCache cache(1 << 20, bytes);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      Random random(t);
      for (int i = 0; i < 5000; ++i) {
        const uint64_t which = random.Below(300);
        const SharedTokens found = cache.Find(Key(which));
        if (found) {
          ASSERT_EQ(found->front(), which);
        }
        cache.Put(Key(which), Tokens(1 + random.Below(3000), static_cast<TokenId>(which)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(bytes.Value(), 1 << 20);
}

}  // namespace
}  // namespace fathom
