#include "router/fleet/rank.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/random.h"
#include "testing/sanitizers.h"

namespace fathom {
namespace {

std::vector<uint32_t> Numbers(const RankTable& ranks) {
  std::vector<uint32_t> numbers;
  ranks.ForEach([&](const Rank& rank) { numbers.push_back(rank.number); });
  return numbers;
}

TEST(RankTable, HasRankZeroBeforeAnybodyIsFollowed) {
  const RankTable ranks;
  EXPECT_FALSE(ranks.several());
  EXPECT_EQ(ranks.only().number, 0u);
  EXPECT_EQ(Numbers(ranks), std::vector<uint32_t>{0});
  EXPECT_EQ(ranks.Find(0), &ranks.only());
  EXPECT_EQ(ranks.Find(1), nullptr);
}

TEST(RankTable, SendsEverythingToTheOnlyRankThatIsFollowed) {
  RankTable ranks;
  ranks.Know(3);
  EXPECT_FALSE(ranks.several());
  EXPECT_EQ(Numbers(ranks), std::vector<uint32_t>{3});
  ranks.Forget(3);
  EXPECT_EQ(Numbers(ranks), std::vector<uint32_t>{0});
}

TEST(RankTable, OffersEveryFollowedRankAsSoonAsThereAreTwo) {
  RankTable ranks;
  for (const uint32_t number : {5, 0, 2}) ranks.Know(number);
  EXPECT_TRUE(ranks.several());
  EXPECT_EQ(Numbers(ranks), (std::vector<uint32_t>{0, 2, 5}));
  ranks.Forget(0);
  EXPECT_EQ(Numbers(ranks), (std::vector<uint32_t>{2, 5}));
  ranks.Forget(5);
  EXPECT_FALSE(ranks.several());
  EXPECT_EQ(ranks.only().number, 2u);
}

TEST(RankTable, CountsFollowersOfTheSameRank) {
  RankTable ranks;
  ranks.Know(1);
  ranks.Know(1);
  EXPECT_FALSE(ranks.several()) << "twice the same is no choice";
  ranks.Forget(1);
  EXPECT_EQ(ranks.only().number, 1u);
  EXPECT_NE(ranks.Find(1), nullptr);
  ranks.Forget(1);
  EXPECT_EQ(ranks.Find(1), nullptr);
}

TEST(RankTable, KeepsARankWithItsLoadWhenItIsForgotten) {
  RankTable ranks;
  ranks.Know(1);
  Rank* const before = ranks.Find(1);
  RankLoad::Stay stay;
  before->load.Enter(stay, RankLoad::Kind::kAnnounced, 10, 20, {});
  ranks.Forget(1);
  ranks.Know(1);
  EXPECT_EQ(ranks.Find(1), before);
  EXPECT_EQ(before->load.Look({}, 1).requests, 1u);
  before->load.Leave(stay, {});
}

TEST(RankTable, IgnoresRanksBeyondItsEnd) {
  RankTable ranks;
  ranks.Know(RankTable::kMost);
  ranks.Know(~0u);
  ranks.Forget(~0u);
  EXPECT_EQ(Numbers(ranks), std::vector<uint32_t>{0});
  EXPECT_EQ(ranks.Find(RankTable::kMost), nullptr);
  ranks.Know(RankTable::kMost - 1);
  EXPECT_EQ(Numbers(ranks), std::vector<uint32_t>{RankTable::kMost - 1});
}

// Followers come and go while requests look for a rank; each lookup finds one.
TEST(RankTable, AlwaysOffersARankWhileFollowersComeAndGo) {
  RankTable ranks;
  std::atomic<bool> over{false};
  std::thread follower([&] {
    Random random(1);
    const int times = kSanitized ? 20'000 : 200'000;
    for (int i = 0; i < times; ++i) {
      const auto a = static_cast<uint32_t>(random.Below(4));
      const auto b = static_cast<uint32_t>(random.Below(4));
      ranks.Know(a);
      ranks.Know(b);
      ranks.Forget(a);
      ranks.Forget(b);
    }
    over = true;
  });
  uint64_t looks = 0;
  uint64_t empty = 0;
  for (; !over; ++looks) empty += Numbers(ranks).empty() ? 1 : 0;
  follower.join();
  EXPECT_GT(looks, 0u);
  EXPECT_EQ(empty, 0u);
  EXPECT_EQ(Numbers(ranks), std::vector<uint32_t>{0});
}

}  // namespace
}  // namespace fathom
