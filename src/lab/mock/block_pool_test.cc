#include "lab/mock/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<BlockPool::BlockId> Take(BlockPool& pool, size_t count,
                                     std::vector<BlockHash>* evicted = nullptr) {
  std::vector<BlockPool::BlockId> blocks;
  std::vector<BlockHash> gone;
  pool.Allocate(count, blocks, gone);
  if (evicted != nullptr) *evicted = gone;
  return blocks;
}

TEST(BlockPool, ReservesOneBlock) {
  BlockPool pool(9);
  EXPECT_EQ(pool.usable_blocks(), 8u);
  EXPECT_EQ(pool.free_blocks(), 8u);
}

TEST(BlockPool, KeepsWhatAFreeBlockHoldsUntilItIsHandedOut) {
  BlockPool pool(3);
  const auto blocks = Take(pool, 2);
  pool.Register(blocks[0], 100);
  pool.Register(blocks[1], 200);
  pool.Free(blocks);
  EXPECT_EQ(pool.Find(100), blocks[0]);
  std::vector<BlockHash> evicted;
  Take(pool, 1, &evicted);
  EXPECT_THAT(evicted, ElementsAre(200));  // the end of a prompt goes before its beginning
  EXPECT_EQ(pool.Find(200), std::nullopt);
  EXPECT_EQ(pool.Find(100), blocks[0]);
}

TEST(BlockPool, HandsOutAnUnhashedBlockFirstSoThatAShortRequestEvictsNothing) {
  BlockPool pool(4);
  const auto old = Take(pool, 3);
  for (size_t i = 0; i < 3; ++i) pool.Register(old[i], 100 + i);
  pool.Free(old);
  std::vector<BlockHash> evicted;
  const auto partial = Take(pool, 1, &evicted);
  EXPECT_THAT(evicted, ElementsAre(102));
  pool.Free(partial);
  Take(pool, 1, &evicted);
  EXPECT_THAT(evicted, IsEmpty());
}

TEST(BlockPool, CountsUsersAndFreesWithTheLast) {
  BlockPool pool(3);
  const auto blocks = Take(pool, 1);
  pool.Register(blocks[0], 7);
  pool.Touch(blocks[0]);
  pool.Free(blocks);
  EXPECT_EQ(pool.free_blocks(), 1u);
  pool.Free(blocks);
  EXPECT_EQ(pool.free_blocks(), 2u);
}

TEST(BlockPool, FindsAnotherCopyWhenTheOldestIsEvicted) {
  BlockPool pool(4);
  const auto first = Take(pool, 1);
  const auto second = Take(pool, 1);
  pool.Register(first[0], 7);
  pool.Register(second[0], 7);
  pool.Free(first);
  EXPECT_EQ(pool.Find(7), first[0]);
  Take(pool, 1);  // the one that was never used
  std::vector<BlockHash> evicted;
  Take(pool, 1, &evicted);
  EXPECT_THAT(evicted, ElementsAre(7));
  EXPECT_EQ(pool.Find(7), second[0]);
}

TEST(BlockPool, IsClearedOnlyWhenNothingIsInUse) {
  BlockPool pool(3);
  const auto blocks = Take(pool, 1);
  pool.Register(blocks[0], 7);
  EXPECT_FALSE(pool.Clear());
  pool.Free(blocks);
  EXPECT_TRUE(pool.Clear());
  EXPECT_EQ(pool.Find(7), std::nullopt);
  EXPECT_EQ(pool.cached_blocks(), 0u);
}

TEST(BlockPool, StaysConsistentThroughAnyHistory) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    BlockPool pool(static_cast<uint32_t>(2 + random.Below(30)));
    std::vector<std::vector<BlockPool::BlockId>> users;
    for (int i = 0; i < 300; ++i) {
      const uint64_t choice = random.Below(4);
      if (choice == 0 && !users.empty()) {
        const size_t which = random.Below(users.size());
        pool.Free(users[which]);
        users.erase(users.begin() + static_cast<ptrdiff_t>(which));
      } else if (choice == 1) {
        const auto found = pool.Find(random.Below(20));
        if (found) {
          pool.Touch(*found);
          users.push_back({*found});
        }
      } else if (pool.free_blocks() > 0) {
        auto blocks = Take(pool, 1 + random.Below(pool.free_blocks()));
        for (const auto block : blocks) {
          if (random.Below(3) > 0) pool.Register(block, random.Below(20));
        }
        users.push_back(std::move(blocks));
      }
      pool.CheckInvariants();
    }
  }
}

TEST(HashIndex, AgreesWithAMapThroughAnyHistory) {
  Random random(3);
  HashIndex index(64);
  std::map<BlockHash, uint32_t> model;
  for (int i = 0; i < 20000; ++i) {
    // Few distinct low bits, so that entries crowd and wrap around.
    const BlockHash hash = random.Below(8) * 0x100000001u + random.Below(2) * 126;
    if (random.Below(2) == 0 && (model.size() < 64 || model.contains(hash))) {
      const auto value = static_cast<uint32_t>(random.Below(1000));
      index.Set(hash, value);
      model[hash] = value;
    } else {
      index.Erase(hash);
      model.erase(hash);
    }
    for (const auto& [h, v] : model) ASSERT_EQ(index.Find(h), v);
    const uint32_t found = index.Find(hash);
    ASSERT_EQ(found == HashIndex::kNone, !model.contains(hash));
  }
}

}  // namespace
}  // namespace fathom
