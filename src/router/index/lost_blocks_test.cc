#include "router/index/lost_blocks.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "base/random.h"
#include "testing/sanitizers.h"

namespace fathom {
namespace {

using std::chrono::seconds;

TEST(LostBlocks, TellsWhatBecameOfABlock) {
  LostBlocks lost(1 << 16);
  EXPECT_FALSE(lost.Find(42));
  uint32_t second = 100;
  for (const LostHow how :
       {LostHow::kSent, LostHow::kEvicted, LostHow::kGone, LostHow::kForgotten}) {
    lost.SetNow(TimePoint(seconds(++second)));
    lost.Add(42, how, 0xfedcba98);  // the latest entry counts
    const auto loss = lost.Find(42);
    ASSERT_TRUE(loss);
    EXPECT_EQ(loss->how, how);
    EXPECT_EQ(loss->owner, 0xfedcba98);
    EXPECT_EQ(loss->second, second);
  }
  EXPECT_FALSE(lost.Find(43));
}

// The smallest table has one place of four blocks.
TEST(LostBlocks, LetsTheOldestGoWhenAPlaceIsFull) {
  LostBlocks lost(1);
  for (uint64_t key = 1; key <= 4; ++key) {
    lost.SetNow(TimePoint(seconds(key)));
    lost.Add(key, LostHow::kEvicted, 0);
  }
  lost.SetNow(TimePoint(seconds(5)));
  lost.Add(1, LostHow::kEvicted, 0);  // now the newest
  lost.SetNow(TimePoint(seconds(6)));
  lost.Add(5, LostHow::kEvicted, 0);
  EXPECT_TRUE(lost.Find(1));
  EXPECT_FALSE(lost.Find(2));
  for (uint64_t key = 3; key <= 5; ++key) EXPECT_TRUE(lost.Find(key)) << key;
}

TEST(LostBlocks, KeepsNearlyAllOfWhatFits) {
  constexpr size_t kKeys = 4096;
  LostBlocks lost(4 * kKeys * 16);  // a quarter full
  Random random(3);
  std::vector<uint64_t> keys(kKeys);
  for (uint64_t& key : keys) key = random.Next();
  for (const uint64_t key : keys) lost.Add(key, LostHow::kSent, 1);
  size_t found = 0;
  for (const uint64_t key : keys) found += lost.Find(key) ? 1 : 0;
  EXPECT_GT(found, kKeys * 95 / 100);
}

TEST(LostBlocks, TellsOwnersApart) {
  std::set<uint32_t> owners;
  for (uint64_t worker = 1; worker <= 64; ++worker) {
    for (uint32_t rank = 0; rank < 16; ++rank) owners.insert(LostBlocks::OwnerOf(worker, rank));
  }
  EXPECT_EQ(owners.size(), 64u * 16);
}

TEST(LostBlocks, KnowsTheShapesOfItsBlocksOnceEach) {
  LostBlocks lost(1);
  lost.AddShape({});
  lost.AddShape({.size = ~0u});
  EXPECT_EQ(lost.shape(0).size, 0u) << "there are no such blocks";
  for (int i = 0; i < 2; ++i) {
    lost.AddShape({.size = 16});
    lost.AddShape({.size = 16, .pairs = true});
  }
  EXPECT_EQ(lost.shape(0), (BlockShape{.size = 16}));
  EXPECT_EQ(lost.shape(1), (BlockShape{.size = 16, .pairs = true}));
  EXPECT_EQ(lost.shape(2).size, 0u);
  for (uint32_t size = 1; size < 100; ++size) lost.AddShape({.size = size});
  EXPECT_EQ(lost.shape(0), (BlockShape{.size = 16})) << "those that came first stay";
  EXPECT_EQ(lost.shape(LostBlocks::kMostShapes - 1).size, 6u);
}

// A block that is found was added by some thread, with one of the causes that were added for it.
TEST(LostBlocks, CanBeWrittenFromManyThreads) {
  constexpr uint64_t kKeys = 64;
  LostBlocks lost(16 * 64);
  std::vector<std::jthread> threads;
  for (uint32_t writer = 0; writer < 4; ++writer) {
    threads.emplace_back([&, writer] {
      Random random(writer + 1);
      for (int i = 0; i < (kSanitized ? 10'000 : 100'000); ++i) {
        lost.Add(2 * (1 + random.Below(kKeys)), LostHow::kEvicted, writer);
        lost.AddShape({.size = static_cast<uint32_t>(1 + random.Below(4))});
        const auto loss = lost.Find(2 * (1 + random.Below(kKeys)));
        if (!loss) continue;
        ASSERT_EQ(loss->how, LostHow::kEvicted);
        ASSERT_LT(loss->owner, 4u);
      }
    });
  }
  threads.clear();
  for (uint64_t key = 1; key < 2 * kKeys; key += 2) EXPECT_FALSE(lost.Find(key)) << key;
  std::set<uint32_t> sizes;
  for (size_t i = 0; i < LostBlocks::kMostShapes && lost.shape(i).size != 0; ++i) {
    EXPECT_TRUE(sizes.insert(lost.shape(i).size).second) << "listed twice";
  }
  EXPECT_EQ(sizes, (std::set<uint32_t>{1, 2, 3, 4}));
}

TEST(LostBlocks, TakesManyAtOnce) {
  for (const size_t count : {0, 1, 7, 8, 9, 100}) {
    LostBlocks lost(size_t{1} << 20);
    std::vector<uint64_t> keys;
    for (size_t i = 1; i <= count; ++i) keys.push_back(i * 0x9e3779b97f4a7c15u);
    lost.Add(keys, LostHow::kSent, 7);
    for (const uint64_t key : keys) {
      const auto loss = lost.Find(key);
      ASSERT_TRUE(loss) << count;
      EXPECT_EQ(loss->owner, 7u);
    }
    EXPECT_FALSE(lost.Find(42));
  }
}

}  // namespace
}  // namespace fathom
