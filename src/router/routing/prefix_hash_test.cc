#include "router/routing/prefix_hash.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "testing/random_views.h"

namespace fathom {
namespace {

constexpr double kBound = 1.25;

std::vector<RankView> Loads(std::initializer_list<uint32_t> requests) {
  std::vector<RankView> ranks;
  for (const uint32_t count : requests) {
    RankView rank{.rank = {.worker = 100 + ranks.size()}};
    rank.load.requests = count;
    ranks.push_back(rank);
  }
  return ranks;
}

TEST(PrefixHash, LooksAtTheBeginningOnly) {
  std::vector<TokenId> tokens(100);
  std::iota(tokens.begin(), tokens.end(), 1);
  auto other_end = tokens;
  other_end[64] = 7;
  auto other_beginning = tokens;
  other_beginning[63] = 7;
  EXPECT_EQ(PrefixHash(tokens, 64, 1), PrefixHash(other_end, 64, 1));
  EXPECT_NE(PrefixHash(tokens, 65, 1), PrefixHash(other_end, 65, 1));
  EXPECT_NE(PrefixHash(tokens, 64, 1), PrefixHash(other_beginning, 64, 1));
  EXPECT_NE(PrefixHash(tokens, 64, 1), PrefixHash(tokens, 64, 2)) << "another namespace";
  EXPECT_EQ(PrefixHash(tokens, 1000, 1), PrefixHash(tokens, 100, 1));
}

TEST(PrefixHash, SendsThePrefixToTheSameRankWhateverTheOrderOfTheRanks) {
  auto ranks = Loads({0, 0, 0, 0, 0});
  auto reversed = ranks;
  std::ranges::reverse(reversed);
  for (uint64_t prefix = 0; prefix < 100; ++prefix) {
    EXPECT_EQ(ranks[PlaceByPrefix(prefix, ranks, kBound)].rank,
              reversed[PlaceByPrefix(prefix, reversed, kBound)].rank);
  }
}

TEST(PrefixHash, SpreadsPrefixesEvenlyAndOverDataParallelRanks) {
  std::vector<RankView> ranks(8);
  for (uint32_t i = 0; i < 8; ++i) ranks[i].rank = {.worker = i / 4, .dp_rank = i % 4};
  std::vector<int> counts(8);
  Random random(1);
  for (int i = 0; i < 8000; ++i) ++counts[PlaceByPrefix(random.Next(), ranks, kBound)];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(PrefixHash, MovesFewPrefixesWhenARankJoins) {
  const auto nine = Loads({0, 0, 0, 0, 0, 0, 0, 0, 0});
  const auto eight = std::span(nine).first(8);
  Random random(1);
  int moved = 0;
  for (int i = 0; i < 9000; ++i) {
    const uint64_t prefix = random.Next();
    const size_t before = PlaceByPrefix(prefix, eight, kBound);
    const size_t after = PlaceByPrefix(prefix, nine, kBound);
    if (after == before) continue;
    ++moved;
    EXPECT_EQ(after, 8u) << "whoever moves goes to the new one";
  }
  EXPECT_NEAR(moved, 1000, 150);
}

// Even if all loads are equal, each prefix must still find its own rank.
TEST(PrefixHash, KeepsPrefixesTogetherOnAnEvenlyLoadedFleet) {
  for (const uint32_t load : {1u, 2u, 3u, 10u}) {
    const auto idle = Loads({0, 0, 0, 0});
    const auto loaded = Loads({load, load, load, load});
    for (uint64_t prefix = 0; prefix < 50; ++prefix) {
      EXPECT_EQ(PlaceByPrefix(prefix, loaded, kBound), PlaceByPrefix(prefix, idle, kBound)) << load;
    }
  }
}

TEST(PrefixHash, GoesToTheNextRankOfItsOrderWhenTheFirstIsLoaded) {
  auto ranks = Loads({4, 4, 4, 4});
  const uint64_t prefix = 42;
  const size_t first = PlaceByPrefix(prefix, ranks, kBound);
  ranks[first].load.requests = 20;
  const size_t second = PlaceByPrefix(prefix, ranks, kBound);
  EXPECT_NE(second, first);
  auto without = ranks;
  without.erase(without.begin() + static_cast<int64_t>(first));
  EXPECT_EQ(without[PlaceByPrefix(prefix, without, kBound)].rank, ranks[second].rank);
}

RC_GTEST_PROP(PrefixHashProperty, TheBoundHolds, ()) {
  const auto ranks = AnyRanks(1000);
  const double bound = 1 + AnyShare();
  const size_t place = PlaceByPrefix(*rc::gen::arbitrary<uint64_t>(), ranks, bound);
  RC_ASSERT(place < ranks.size());
  double requests = 1;
  for (const RankView& rank : ranks) requests += rank.load.requests;
  const double most = std::ceil(bound * requests / static_cast<double>(ranks.size()) + 1e-9);
  RC_ASSERT(ranks[place].load.requests + 1 <= most);
}

// However hot a prefix is, its rank's load never exceeds the bound times the mean.
TEST(PrefixHash, KeepsOneHotPrefixFromOneRank) {
  auto ranks = Loads({0, 0, 0, 0});
  for (int i = 0; i < 100; ++i) ++ranks[PlaceByPrefix(42, ranks, kBound)].load.requests;
  for (const RankView& rank : ranks) EXPECT_LE(rank.load.requests, 32u);
}

}  // namespace
}  // namespace fathom
