#include "text/tokens/block_hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "text/tokens/key_chain.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;

std::vector<TokenId> Counting(TokenId from, TokenId to) {
  std::vector<TokenId> tokens(to - from + 1);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

std::vector<uint64_t> SeededKeys(const std::vector<TokenId>& tokens, BlockShape shape,
                                 uint64_t seed = kKeySeed) {
  std::vector<uint64_t> storage;
  KeyChain chain(tokens, shape, seed, storage);
  const auto keys = chain.All();
  return {keys.begin(), keys.end()};
}

// The constants are those that the other users of the scheme publish.
TEST(BlockHash, AgreesWithThePublishedLocalHashes) {
  const auto tokens = Counting(1, 12);
  const BlockShape shape{.size = 4};
  EXPECT_EQ(LocalHash(shape.Block(tokens, 0), kKeySeed), 14643705804678351452u);
  EXPECT_EQ(LocalHash(shape.Block(tokens, 1), kKeySeed), 16777012769546811212u);
  EXPECT_EQ(LocalHash(shape.Block(tokens, 2), kKeySeed), 483935686894639516u);
  EXPECT_EQ(LocalHash(Counting(1, 16), kKeySeed), 16863443419780771464u);
}

TEST(BlockHash, AgreesWithThePublishedKeys) {
  EXPECT_THAT(SeededKeys(Counting(1, 12), {.size = 4}),
              ElementsAre(14643705804678351452u, 4945711292740353085u, 12583592247330656132u));
}

TEST(BlockHash, KeepsAdaptersAndSaltsApart) {
  const auto tokens = Counting(1, 4);
  EXPECT_EQ(NamespaceSeed("", ""), kKeySeed);
  EXPECT_EQ(NamespaceSeed("adapter-a", ""), 8842669519798868182u);
  EXPECT_EQ(NamespaceSeed("", "tenant-a"), 1948188790972764086u);
  EXPECT_EQ(LocalHash(tokens, NamespaceSeed("adapter-a", "")), 11381080598872079209u);
  EXPECT_EQ(LocalHash(tokens, NamespaceSeed("", "tenant-a")), 5738685477468498325u);
  EXPECT_EQ(LocalHash(tokens, NamespaceSeed("adapter-a", "tenant-a")), 9967753091837871098u);
}

TEST(BlockHash, CountsWhatStandsInPlaceOfTokensInAnyOrder) {
  const auto tokens = Counting(1, 4);
  const std::vector<uint64_t> extra = {9, 5};
  EXPECT_EQ(LocalHash(tokens, extra, kKeySeed), 235436700144873471u);
  EXPECT_EQ(LocalHash(tokens, std::span<const uint64_t>(), kKeySeed), LocalHash(tokens, kKeySeed));
}

TEST(BlockHash, LooksOneTokenFurtherWithPairs) {
  const BlockShape shape{.size = 4, .pairs = true};
  const auto tokens = Counting(1, 9);
  ASSERT_EQ(shape.BlocksIn(tokens.size()), 2u);
  EXPECT_EQ(LocalHash(shape.Block(tokens, 0), kKeySeed), 1914873892905420881u);
  EXPECT_EQ(LocalHash(shape.Block(tokens, 1), kKeySeed), 1929047464662796003u);
}

TEST(BlockShape, CountsCompleteBlocksOnly) {
  EXPECT_EQ((BlockShape{.size = 4}.BlocksIn(11)), 2u);
  EXPECT_EQ((BlockShape{.size = 4, .pairs = true}.BlocksIn(8)), 1u);
  EXPECT_EQ((BlockShape{.size = 4, .pairs = true}.BlocksIn(0)), 0u);
  EXPECT_EQ((BlockShape{}.BlocksIn(100)), 0u);
}

TEST(BlockShape, LeavesTheLastTokenToBeComputed) {
  const BlockShape shape{.size = 4};
  EXPECT_EQ(shape.MostCached(0), 0u);
  EXPECT_EQ(shape.MostCached(4), 0u);
  EXPECT_EQ(shape.MostCached(5), 4u);
  EXPECT_EQ(shape.MostCached(8), 4u);
  EXPECT_EQ(shape.MostCached(9), 8u);
}

TEST(KeyChain, MakesNoMoreKeysThanAskedFor) {
  const auto tokens = Counting(1, 400);
  std::vector<uint64_t> storage;
  KeyChain chain(tokens, {.size = 4}, kKeySeed, storage);
  EXPECT_EQ(chain.size(), 100u);
  EXPECT_EQ(chain.At(2), 12583592247330656132u);
  EXPECT_EQ(chain.made(), 3u);
  EXPECT_EQ(chain.At(0), 14643705804678351452u);
  EXPECT_EQ(chain.made(), 3u);
}

TEST(KeyChain, ChainsGivenHashesLikeThoseOfTokens) {
  const auto tokens = Counting(1, 40);
  const BlockShape shape{.size = 4};
  std::vector<uint64_t> locals;
  for (size_t i = 0; i < 10; ++i) locals.push_back(LocalHash(shape.Block(tokens, i), kKeySeed));
  std::vector<uint64_t> storage(3);  // grows as it must
  KeyChain chain(locals, storage);
  const auto keys = chain.All();
  EXPECT_EQ(std::vector<uint64_t>(keys.begin(), keys.end()), SeededKeys(tokens, shape));
}

}  // namespace
}  // namespace fathom
