#include "router/index/prefix_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "testing/index_model.h"
#include "testing/sanitizers.h"

namespace fathom {
namespace {

using std::chrono::seconds;

constexpr uint32_t kBlock = 4;
constexpr size_t kAmpleMemory = size_t{1} << 30;

// Token ids 100, 101, ...
std::vector<TokenId> Tokens(size_t blocks, TokenId from = 100) {
  std::vector<TokenId> tokens(blocks * kBlock);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

std::vector<uint64_t> Hashes(uint64_t from, size_t count) {
  std::vector<uint64_t> hashes(count);
  std::iota(hashes.begin(), hashes.end(), from);
  return hashes;
}

class PrefixIndexTest : public testing::Test {
 protected:
  std::unique_ptr<RankHoldings> Add(uint64_t worker = 1) {
    return index_.AddRank({worker, 0}, seat_);
  }
  Depth DepthOf(const RankHoldings& rank, const std::vector<TokenId>& tokens,
                uint64_t seed = kKeySeed) {
    std::vector<uint64_t> storage;
    KeyChain keys(tokens, index_.shape(), seed, storage);
    return reader_.Match(keys)[rank.rank()];
  }
  uint32_t Device(const RankHoldings& rank, const std::vector<TokenId>& tokens,
                  uint64_t seed = kKeySeed) {
    return DepthOf(rank, tokens, seed).device();
  }
  // Blocks `begin` to `end` of the prompt Tokens(), whose hashes count from 1.
  void Store(RankHoldings& rank, size_t begin, size_t end, CachePart part = {},
             TimePoint now = {}) {
    const std::vector<TokenId> tokens = Tokens(end);
    const auto hashes = Hashes(1 + begin, end - begin);
    StoredRun run{
        .hashes = hashes, .tokens = std::span(tokens).subspan(begin * kBlock), .part = part};
    if (begin > 0) run.parent = begin;
    rank.Store(run, now);
  }
  void Remove(RankHoldings& rank, const std::vector<uint64_t>& hashes, CachePart part = {}) {
    rank.Remove(hashes, part);
  }

  MemoryMeter meter_{kAmpleMemory};
  Epochs epochs_;
  PrefixIndex index_{{.size = kBlock}, epochs_, meter_, 12345};
  Epochs::Seat seat_{epochs_};
  IndexReader reader_{index_};
};

TEST_F(PrefixIndexTest, KnowsHowDeepEachRankReaches) {
  const auto a = Add(1);
  const auto b = Add(2);
  const auto c = Add(3);
  Store(*a, 0, 10);
  Store(*b, 0, 3);
  EXPECT_EQ(Device(*a, Tokens(20)), 10u);
  EXPECT_EQ(Device(*b, Tokens(20)), 3u);
  EXPECT_EQ(Device(*c, Tokens(20)), 0u);
  EXPECT_EQ(Device(*a, Tokens(5)), 5u);
  EXPECT_EQ(Device(*a, Tokens(20, 999)), 0u);
  EXPECT_EQ(index_.Label(b->rank()), (RankLabel{2, 0}));
}

TEST_F(PrefixIndexTest, ContinuesWhereTheParentIs) {
  const auto a = Add();
  Store(*a, 0, 3);
  Store(*a, 3, 9);
  EXPECT_EQ(Device(*a, Tokens(20)), 9u);
  EXPECT_EQ(a->counters().held.value(), 9u);
}

TEST_F(PrefixIndexTest, CountsCopies) {
  const auto a = Add();
  Store(*a, 0, 4);
  Store(*a, 3, 4);
  Remove(*a, {4});
  EXPECT_EQ(Device(*a, Tokens(4)), 4u);
  Remove(*a, {4});
  EXPECT_EQ(Device(*a, Tokens(4)), 3u);
  EXPECT_EQ(a->counters().copies.value(), 1u);
}

TEST_F(PrefixIndexTest, ABlockThatLeavesTheMiddleHidesWhatFollows) {
  const auto a = Add(1);
  const auto b = Add(2);
  Store(*a, 0, 100);
  Store(*b, 0, 100);
  Remove(*a, {50});
  EXPECT_EQ(Device(*a, Tokens(100)), 49u);
  EXPECT_EQ(Device(*b, Tokens(100)), 100u);
  Store(*a, 49, 50);
  EXPECT_EQ(Device(*a, Tokens(100)), 100u);
  EXPECT_EQ(a->counters().ghosts.value(), 0u);
}

TEST_F(PrefixIndexTest, WhatIsHiddenCanLeave) {
  const auto a = Add();
  Store(*a, 0, 10);
  Remove(*a, {5});
  EXPECT_EQ(a->counters().ghosts.value(), 1u);
  Remove(*a, {6, 7, 8, 9, 10});
  EXPECT_EQ(a->counters().ghosts.value(), 0u);
  EXPECT_EQ(Device(*a, Tokens(10)), 4u);
  Remove(*a, {1, 2, 3, 4});
  EXPECT_EQ(a->counters().held.value(), 0u);
  EXPECT_EQ(index_.CountBlocks(), 0u);
}

TEST_F(PrefixIndexTest, NeverAttachesAnOrphanToTheRoot) {
  const auto a = Add();
  Store(*a, 5, 8);
  EXPECT_EQ(Device(*a, Tokens(8)), 0u);
  const auto alone = Tokens(3, 100 + 5 * kBlock);
  EXPECT_EQ(Device(*a, alone), 0u);
  EXPECT_EQ(a->counters().orphans.value(), 3u);
}

TEST_F(PrefixIndexTest, AdoptsOrphansOfOrphansWhenTheirParentTurnsUp) {
  const auto a = Add();
  Store(*a, 8, 12);
  Store(*a, 5, 8);
  Remove(*a, {11});
  EXPECT_EQ(a->counters().unknown_removed.value(), 0u);
  Store(*a, 0, 5);
  EXPECT_EQ(Device(*a, Tokens(12)), 10u);
  EXPECT_EQ(a->counters().adopted.value(), 7u);
  EXPECT_EQ(a->counters().orphans.value(), 0u);
  Store(*a, 10, 11);
  EXPECT_EQ(Device(*a, Tokens(12)), 12u);
}

TEST_F(PrefixIndexTest, GivesUpOrphansThatWaitTooLong) {
  const auto a = Add();
  const TimePoint start{};
  Store(*a, 5, 8, {}, start);
  a->ExpireOrphans(start + seconds(1));
  EXPECT_EQ(a->counters().orphans.value(), 3u);
  a->ExpireOrphans(start + OrphanShed::kPatience);
  EXPECT_EQ(a->counters().orphans.value(), 0u);
  EXPECT_EQ(a->counters().lost_orphans.value(), 3u);
  Store(*a, 0, 5, {}, start);
  EXPECT_EQ(Device(*a, Tokens(8)), 5u);
}

TEST_F(PrefixIndexTest, ParksABoundedNumberOfOrphans) {
  const auto a = Add();
  const auto tokens = Tokens(1);
  for (uint64_t i = 0; i < 3 * OrphanShed::kMostBlocks; ++i) {
    const auto hashes = Hashes(1'000'000 + i, 1);
    a->Store({.parent = 500'000 + i, .hashes = hashes, .tokens = tokens}, {});
  }
  EXPECT_EQ(a->counters().orphans.value(), OrphanShed::kMostBlocks);
  EXPECT_EQ(a->counters().lost_orphans.value(), 2 * OrphanShed::kMostBlocks);
}

TEST_F(PrefixIndexTest, CountsRemovalsOfWhatItDoesNotKnow) {
  const auto a = Add();
  Remove(*a, {77});
  Store(*a, 0, 2);
  Remove(*a, {78, 79});
  EXPECT_EQ(a->counters().unknown_removed.value(), 3u);
  EXPECT_EQ(Device(*a, Tokens(2)), 2u);
}

TEST_F(PrefixIndexTest, ForgetsEverythingWhenTheCacheIsCleared) {
  const auto a = Add(1);
  const auto b = Add(2);
  Store(*a, 0, 50);
  Store(*a, 60, 70);
  Store(*b, 0, 50);
  a->Clear();
  EXPECT_EQ(Device(*a, Tokens(50)), 0u);
  EXPECT_EQ(Device(*b, Tokens(50)), 50u);
  EXPECT_EQ(a->counters().orphans.value(), 0u);
  Store(*a, 0, 7);
  EXPECT_EQ(Device(*a, Tokens(50)), 7u);
}

TEST_F(PrefixIndexTest, ARankThatLeavesTakesItsBlocksAlong) {
  auto a = Add(1);
  const auto b = Add(2);
  Store(*a, 0, 50);
  Store(*b, 0, 20);
  const uint32_t number = a->rank();
  a.reset();
  EXPECT_EQ(index_.CountBlocks(), 20u);
  const auto again = Add(3);
  EXPECT_EQ(again->rank(), number);
  EXPECT_EQ(Device(*again, Tokens(50)), 0u);
}

TEST_F(PrefixIndexTest, KeepsNamespacesApartAndInheritsThem) {
  const auto a = Add();
  const uint64_t salted = NamespaceSeed("", "s1");
  const auto tokens = Tokens(4);
  const auto hashes = Hashes(1, 2);
  const auto more = Hashes(3, 2);
  a->Store({.hashes = hashes, .tokens = std::span(tokens).first(2 * kBlock), .seed = salted}, {});
  // The engine does not repeat the salt.
  a->Store({.parent = 2, .hashes = more, .tokens = std::span(tokens).subspan(2 * kBlock)}, {});
  EXPECT_EQ(Device(*a, tokens, salted), 4u);
  EXPECT_EQ(Device(*a, tokens), 0u);
}

TEST_F(PrefixIndexTest, ReusesNamespacesThatNoBlockIsIn) {
  const auto a = Add();
  const auto tokens = Tokens(1);
  for (uint64_t i = 0; i < 200'000; ++i) {
    const std::vector<uint64_t> hash = {i + 1};
    a->Store({.hashes = hash, .tokens = tokens, .seed = 1'000'000 + i}, {});
    ASSERT_EQ(Device(*a, tokens, 1'000'000 + i), 1u) << i;
    Remove(*a, hash);
  }
  EXPECT_EQ(a->counters().refused.value(), 0u);
}

TEST_F(PrefixIndexTest, RefusesANamespaceTooManyRatherThanMixThem) {
  const auto a = Add();
  const auto tokens = Tokens(1);
  for (uint64_t i = 0; i < 70'000; ++i) {
    const std::vector<uint64_t> hash = {i + 1};
    a->Store({.hashes = hash, .tokens = tokens, .seed = 1'000'000 + i}, {});
  }
  EXPECT_EQ(a->counters().held.value(), 65'535u);
  EXPECT_EQ(a->counters().refused.value(), 70'000u - 65'535u);
  EXPECT_EQ(Device(*a, tokens), 0u);
}

TEST_F(PrefixIndexTest, CountsLowerTiersOnTop) {
  const auto a = Add();
  Store(*a, 0, 6);
  Store(*a, 4, 9, {.tier = Tier::kHost});
  Store(*a, 9, 12, {.tier = Tier::kDisk});
  EXPECT_EQ(DepthOf(*a, Tokens(20)), (Depth{{6, 9, 12, 12}}));
  Remove(*a, {5, 6});
  EXPECT_EQ(DepthOf(*a, Tokens(20)), (Depth{{4, 9, 12, 12}}));
}

TEST_F(PrefixIndexTest, FollowsABlockThatChangesItsTier) {
  const auto a = Add();
  Store(*a, 0, 6);
  a->Move(5, {}, Tier::kHost);
  EXPECT_EQ(DepthOf(*a, Tokens(6)), (Depth{{4, 6, 6, 6}}));
  a->Move(6, {}, Tier::kHost);
  EXPECT_EQ(DepthOf(*a, Tokens(6)), (Depth{{4, 6, 6, 6}}));
  a->Move(6, {.tier = Tier::kHost}, Tier::kDevice);
  EXPECT_EQ(DepthOf(*a, Tokens(6)), (Depth{{4, 6, 6, 6}}));
  a->Move(5, {.tier = Tier::kHost}, Tier::kDevice);
  EXPECT_EQ(DepthOf(*a, Tokens(6)), (Depth{{6, 6, 6, 6}}));
  a->Move(99, {}, Tier::kHost);
  EXPECT_EQ(a->counters().unknown_removed.value(), 1u);
  Remove(*a, {3});
  EXPECT_EQ(DepthOf(*a, Tokens(6)), (Depth{{2, 2, 2, 2}}));
}

TEST_F(PrefixIndexTest, WindowGroupsNeedOnlyTheirTail) {
  const auto a = Add();
  const auto tokens = Tokens(10);
  const auto window = [&](uint64_t first, size_t end, std::optional<uint64_t> parent) {
    const auto hashes = Hashes(first, end - first + 1);
    const size_t begin = parent.value_or(0);
    a->Store({.parent = parent,
              .hashes = hashes,
              .tokens = std::span(tokens).subspan(begin * kBlock, (end - begin) * kBlock),
              .part = {.group = 1},
              .kind = GroupKind::kWindow,
              .window = 2 * kBlock},
             {});
  };
  window(5, 6, std::nullopt);  // only the last two of six blocks are named
  Store(*a, 0, 6);
  EXPECT_EQ(Device(*a, tokens), 6u);
  EXPECT_EQ(Device(*a, Tokens(5)), 0u);  // its window would need blocks 4 and 5
  Store(*a, 6, 9);
  window(9, 9, 6);
  EXPECT_EQ(Device(*a, tokens), 6u);
  window(8, 8, 7);
  EXPECT_EQ(Device(*a, tokens), 9u);
}

// A window group of two blocks, whose events name only some blocks of their runs.
class PartlyNamed : public PrefixIndexTest {
 protected:
  // Of the first blocks of the prompt Tokens().
  void Name(RankHoldings& rank, const std::vector<uint64_t>& hashes, size_t blocks,
            TimePoint now = {}) {
    const auto tokens = Tokens(blocks);
    rank.Store({.hashes = hashes,
                .tokens = tokens,
                .part = kWindow,
                .kind = GroupKind::kWindow,
                .window = 2 * kBlock},
               now);
  }
  std::vector<uint32_t> Depths(const RankHoldings& rank, size_t blocks) {
    std::vector<uint32_t> depths;
    for (size_t i = 1; i <= blocks; ++i) depths.push_back(Device(rank, Tokens(i)));
    return depths;
  }
  static constexpr CachePart kWindow{.group = 1};
};

// vLLM publishes the window group [3,4,5,6] beside the full group [3,4,7,5,6].
TEST_F(PartlyNamed, ABlockMayBeLeftOutInTheMiddle) {
  const auto a = Add();
  Name(*a, {1, 2, 4, 5}, 5);
  Store(*a, 0, 5);
  EXPECT_EQ(Depths(*a, 5), (std::vector<uint32_t>{1, 2, 2, 2, 5}));
  const auto b = Add(2);
  Store(*b, 0, 5);  // the full group may also come first
  Name(*b, {1, 2, 4, 5}, 5);
  EXPECT_EQ(Depths(*b, 5), (std::vector<uint32_t>{1, 2, 2, 2, 5}));
  Remove(*b, {5}, kWindow);
  EXPECT_EQ(Depths(*b, 5), (std::vector<uint32_t>{1, 2, 2, 2, 2}));
}

TEST_F(PartlyNamed, TheLastBlockMayBeLeftOut) {
  const auto a = Add();
  Name(*a, {1, 2}, 3);
  Store(*a, 0, 3);
  EXPECT_EQ(Depths(*a, 3), (std::vector<uint32_t>{1, 2, 2}));
}

TEST_F(PartlyNamed, ABlockIsNotClaimedBeforeItsPlaceIsKnown) {
  const auto a = Add();
  Name(*a, {2, 3}, 4);
  EXPECT_EQ(Depths(*a, 4), (std::vector<uint32_t>{0, 0, 0, 0}));
  EXPECT_EQ(a->counters().orphans.value(), 2u);
  EXPECT_EQ(a->counters().parked.value(), 2u);
  Store(*a, 0, 1);
  EXPECT_EQ(Depths(*a, 4), (std::vector<uint32_t>{0, 0, 0, 0}));
  Store(*a, 1, 4);
  EXPECT_EQ(Depths(*a, 4), (std::vector<uint32_t>{0, 0, 3, 3}));
  EXPECT_EQ(a->counters().orphans.value(), 0u);
  EXPECT_EQ(a->counters().adopted.value(), 2u);
}

TEST_F(PartlyNamed, ABlockThatLeavesWhileItWaitsIsGone) {
  const auto a = Add();
  Name(*a, {2, 3}, 4);
  Name(*a, {3}, 4);
  Remove(*a, {2, 3}, kWindow);
  EXPECT_EQ(a->counters().unknown_removed.value(), 0u);
  Store(*a, 0, 4);
  EXPECT_EQ(Depths(*a, 4), (std::vector<uint32_t>{0, 0, 0, 0}));
  Name(*a, {2}, 4);
  EXPECT_EQ(Depths(*a, 4), (std::vector<uint32_t>{0, 0, 3, 3}));  // a copy of block 3 has stayed
  Remove(*a, {3}, kWindow);
  EXPECT_EQ(Depths(*a, 4), (std::vector<uint32_t>{0, 0, 0, 0}));
}

TEST_F(PartlyNamed, BlocksThatWaitTooLongAreGivenUp) {
  const auto a = Add();
  Name(*a, {2, 3}, 4, TimePoint{} + seconds(1));
  a->ExpireOrphans(TimePoint{} + seconds(120));
  EXPECT_EQ(a->counters().orphans.value(), 2u);
  a->ExpireOrphans(TimePoint{} + seconds(121));
  EXPECT_EQ(a->counters().orphans.value(), 0u);
  EXPECT_EQ(a->counters().lost_orphans.value(), 2u);
}

TEST_F(PartlyNamed, ABoundedNumberWaits) {
  const auto a = Add();
  const size_t before = meter_.bytes();
  for (uint64_t i = 0; i < 100'000; ++i) Name(*a, {i * 2 + 1}, 2);
  EXPECT_EQ(a->counters().orphans.value(), UnplacedBlocks::kMostBlocks);
  EXPECT_EQ(a->counters().lost_orphans.value(), 100'000 - UnplacedBlocks::kMostBlocks);
  EXPECT_LT(meter_.bytes() - before, size_t{2} << 20);
  a->Clear();
  EXPECT_EQ(a->counters().orphans.value(), 0u);
}

// Without a group that names every block, nothing is claimed that may be wrong.
TEST_F(PartlyNamed, AFullGroupThatNamesSomeIsNotGuessedEither) {
  const auto a = Add();
  const auto tokens = Tokens(3);
  const auto hashes = Hashes(1, 2);
  a->Store({.hashes = hashes, .tokens = tokens}, {});
  EXPECT_EQ(Depths(*a, 3), (std::vector<uint32_t>{0, 0, 0}));
  Store(*a, 0, 3);
  EXPECT_EQ(Depths(*a, 3), (std::vector<uint32_t>{1, 2, 3}));
  Remove(*a, {1, 2}, {});  // each has a second copy
  EXPECT_EQ(Depths(*a, 3), (std::vector<uint32_t>{1, 2, 3}));
}

TEST_F(PrefixIndexTest, GroupsWithoutARuleAreSeenAndNotGuessed) {
  const auto a = Add();
  Store(*a, 0, 4);
  const auto tokens = Tokens(4);
  const auto hashes = Hashes(1, 4);
  a->Store(
      {.hashes = hashes, .tokens = tokens, .part = {.group = 1}, .kind = GroupKind::kUnsupported},
      {});
  EXPECT_EQ(a->counters().unsupported_groups.value(), 1u);
  EXPECT_EQ(a->counters().unsupported.value(), 4u);
  EXPECT_EQ(Device(*a, tokens), 4u);
}

TEST_F(PrefixIndexTest, AHashWithAnotherContentIsRefused) {
  const auto a = Add();
  Store(*a, 0, 4);
  const auto other = Tokens(4, 5000);
  const auto hashes = Hashes(1, 4);
  a->Store({.hashes = hashes, .tokens = other}, {});
  EXPECT_EQ(a->counters().conflicts.value(), 1u);
  EXPECT_EQ(Device(*a, other), 0u);
  EXPECT_EQ(Device(*a, Tokens(4)), 4u);
}

TEST_F(PrefixIndexTest, HasRoomForMoreRanksThanABankHasLanes) {
  std::vector<std::unique_ptr<RankHoldings>> ranks;
  for (size_t i = 0; i < 200; ++i) {
    ranks.push_back(Add(i));
    Store(*ranks.back(), 0, i % 7 + 1);
  }
  // A second lane for each: banks overflow and ranks move.
  for (size_t i = 0; i < 200; ++i) {
    Store(*ranks[i], i % 7 + 1, i % 7 + 3, {.tier = Tier::kHost});
  }
  for (size_t i = 0; i < 200; ++i) {
    const auto depth = static_cast<uint32_t>(i % 7 + 1);
    EXPECT_EQ(DepthOf(*ranks[i], Tokens(20)), (Depth{{depth, depth + 2, depth + 2, depth + 2}}))
        << i;
  }
}

TEST_F(PrefixIndexTest, GivesMemoryBackWhenBlocksLeave) {
  const auto a = Add();
  const size_t empty = meter_.bytes();
  for (int round = 0; round < 3; ++round) {
    const size_t blocks = 200'000;
    Store(*a, 0, blocks);
    const size_t full = meter_.bytes();
    EXPECT_LT(full, empty + blocks * 75);
    for (size_t begin = 0; begin < blocks; begin += 1000) {
      Remove(*a, Hashes(1 + blocks - begin - 1000, 1000));
    }
    epochs_.Collect();
    EXPECT_LT(meter_.bytes(), empty + full / 20) << "round " << round;
  }
}

// An hour of a busy fleet: every second a hundred prompts are stored in a rank and as many are
// removed. Some share a beginning, most are new.
TEST_F(PrefixIndexTest, HasASteadySizeUnderAnHourOfChurn) {
  constexpr size_t kPrompts = 400;  // in the cache of a rank
  constexpr size_t kLength = 6;
  std::vector<std::unique_ptr<RankHoldings>> ranks;
  for (uint64_t i = 0; i < 3; ++i) ranks.push_back(Add(i));
  Random random(7);
  size_t settled = 0;
  constexpr uint64_t kLast = kSanitized ? 36'000 : 360'000;
  for (uint64_t i = 0; i < kLast; ++i) {
    RankHoldings& rank = *ranks[i % ranks.size()];
    std::vector<TokenId> tokens(kLength * kBlock, static_cast<TokenId>(i));
    std::fill_n(tokens.begin(), kBlock, static_cast<TokenId>(random.Below(3)));
    std::vector<uint64_t> hashes(kLength);
    for (size_t b = 0; b < kLength; ++b) hashes[b] = i * kLength + b + 1;
    rank.Store({.hashes = hashes, .tokens = tokens, .seed = 1 + i % 1000}, {});
    if (i >= kPrompts * ranks.size()) {
      const uint64_t old = i - kPrompts * ranks.size();
      for (size_t b = 0; b < kLength; ++b) hashes[b] = (old + 1) * kLength - b;
      rank.Remove(hashes, {});
    }
    if (i == kLast / 10) settled = meter_.bytes();
  }
  epochs_.Collect();
  EXPECT_LT(static_cast<double>(meter_.bytes()), static_cast<double>(settled) * 1.1);
  EXPECT_EQ(ranks[0]->counters().held.value(), kPrompts * kLength);
}

// --- memory limit -------------------------------------------------------------------------------

TEST(PrefixIndexLimit, ForgetsLeavesAndKeepsPrefixes) {
  MemoryMeter meter(2 << 20);
  Epochs epochs;
  PrefixIndex index({.size = kBlock}, epochs, meter, 1);
  Epochs::Seat seat(epochs);
  IndexReader reader(index);
  const auto rank = index.AddRank({1, 0}, seat);
  std::vector<TokenId> tokens(kBlock);
  for (uint64_t i = 0; i < 100'000; ++i) {
    tokens.assign(2 * kBlock, static_cast<TokenId>(i));
    const std::vector<uint64_t> hashes = {2 * i + 1, 2 * i + 2};
    rank->Store({.hashes = hashes, .tokens = tokens}, {});
    ASSERT_LE(meter.bytes(), meter.limit() + (256 << 10));
  }
  EXPECT_GT(rank->counters().evicted.value(), 100'000u);
  EXPECT_GT(rank->counters().held.value(), 10'000u);
  EXPECT_EQ(rank->counters().refused.value(), 0u);
  EXPECT_EQ(rank->counters().ghosts.value(), 0u);
  size_t reachable = 0;
  std::vector<uint64_t> storage;
  for (uint64_t i = 0; i < 100'000; ++i) {
    tokens.assign(2 * kBlock, static_cast<TokenId>(i));
    KeyChain keys(tokens, index.shape(), kKeySeed, storage);
    reachable += reader.Match(keys)[rank->rank()].device();
  }
  EXPECT_EQ(reachable, rank->counters().held.value());
}

// --- compared with a naive model -----------------------------------------------------------------

struct Life {
  std::vector<ModelGroup> groups;
  size_t tiers;
  // The depth must be the model's; else, without a group that names all its blocks, at most that.
  bool exact = true;
};

class ModelLives : public testing::TestWithParam<int> {};

const Life kLives[] = {
    {{{0, 0}}, 1},                               // plain
    {{{0, 0}}, 3},                               // offloading
    {{{0, 2 * kBlock}, {1, 0}}, 1},              // sliding window and full attention
    {{{0, 9}, {1, 0}, {2, 3 * kBlock + 1}}, 2},  // both
    {{{0, 2 * kBlock}, {1, 9}}, 2, false},       // windows alone
};

void LiveAndCompare(const Life& life, uint64_t seed) {
  Random random(seed);
  MemoryMeter meter(kAmpleMemory);
  Epochs epochs;
  PrefixIndex index({.size = kBlock}, epochs, meter, random.Next());
  Epochs::Seat seat(epochs);
  IndexReader reader(index);
  const PromptTree tree(20 + random.Below(100), random);
  constexpr size_t kRanks = 4;
  std::vector<std::unique_ptr<RankHoldings>> ranks(kRanks);
  std::vector<ModelRank> models(kRanks);
  for (auto& rank : ranks) rank = index.AddRank({1, 0}, seat);
  // Every group must have been stored once, otherwise its kind is unknown.
  // With `leave_out`, the event does not name all blocks.
  const auto store = [&](size_t r, size_t begin, const std::vector<size_t>& path, CachePart part,
                         uint32_t window, bool leave_out) {
    std::vector<uint64_t> hashes;
    for (size_t i = begin; i < path.size(); ++i) {
      if (leave_out && random.Below(3) == 0) continue;
      hashes.push_back(tree.blocks[path[i]].hash);
      models[r].Add(part, path[i]);
    }
    const std::vector<uint64_t> locals =
        tree.Locals({path.begin() + static_cast<ptrdiff_t>(begin), path.end()});
    StoredRun run{.hashes = hashes,
                  .locals = locals,
                  .part = part,
                  .kind = window > 0 ? GroupKind::kWindow : GroupKind::kFull,
                  .window = window};
    if (begin > 0) run.parent = tree.blocks[path[begin - 1]].hash;
    ranks[r]->Store(run, {});
  };
  for (size_t r = 0; r < kRanks; ++r) {
    for (const ModelGroup& group : life.groups) {
      store(r, 0, tree.Path(0), {Tier::kDevice, group.number}, group.window, false);
    }
  }
  for (int step = 0; step < 300; ++step) {
    const size_t r = random.Below(kRanks);
    const ModelGroup& group = life.groups[random.Below(life.groups.size())];
    const CachePart part{static_cast<Tier>(random.Below(life.tiers)), group.number};
    const std::vector<size_t> path = tree.Path(random.Below(tree.blocks.size()));
    const uint64_t what = random.Below(100);
    if (what < 50) {
      const size_t begin = random.Below(3) == 0 ? random.Below(path.size()) : 0;
      store(r, begin, path, part, group.window, group.window > 0 && random.Below(2) == 0);
    } else if (what < 98) {
      // Tail first as engines do, or in another order.
      std::vector<uint64_t> hashes;
      size_t at = path.size();
      const size_t count = 1 + random.Below(path.size());
      for (size_t i = 0; i < count; ++i) {
        at = random.Below(4) == 0 ? random.Below(path.size()) + 1 : std::max<size_t>(at, 1);
        hashes.push_back(tree.blocks[path[at - 1]].hash);
        models[r].Remove(part, path[at - 1]);
        --at;
      }
      ranks[r]->Remove(hashes, part);
    } else {
      models[r].Clear();
      ranks[r]->Clear();
    }
    std::vector<uint64_t> storage;
    const std::vector<size_t> asked = tree.Path(random.Below(tree.blocks.size()));
    const std::vector<uint64_t> locals = tree.Locals(asked);
    KeyChain keys(locals, storage);
    const auto depths = reader.Match(keys);
    for (size_t i = 0; i < kRanks; ++i) {
      const Depth depth = depths[ranks[i]->rank()];
      const Depth expected = models[i].DepthOf(asked, life.groups, kBlock);
      const bool less = std::ranges::equal(depth.blocks, expected.blocks, std::less_equal());
      ASSERT_TRUE(life.exact ? depth == expected : less)
          << "seed " << seed << " step " << step << " rank " << i << ": "
          << testing::PrintToString(depth.blocks) << " instead of "
          << testing::PrintToString(expected.blocks);
    }
  }
}

TEST_P(ModelLives, AgreesWithTheObviousIndexAfterAnyHistory) {
  for (uint64_t seed = 1; seed <= (kSanitized ? 8 : 80); ++seed) {
    ASSERT_NO_FATAL_FAILURE(LiveAndCompare(kLives[GetParam()], seed));
  }
}

INSTANTIATE_TEST_SUITE_P(PrefixIndex, ModelLives, testing::Range(0, 5));

// --- many threads --------------------------------------------------------------------------------

// Ranks whose blocks do not change must look the same in every lookup, while writers of other ranks
// change the same keys, the same buckets and the size of the table.
TEST(PrefixIndexThreads, ReadersAlwaysSeeWhatDoesNotChange) {
  MemoryMeter meter(kAmpleMemory);
  Epochs epochs;
  PrefixIndex index({.size = kBlock}, epochs, meter, 99);
  constexpr size_t kBlocks = 400;
  const std::vector<TokenId> tokens = Tokens(kBlocks);
  Epochs::Seat seat(epochs);
  const auto still = index.AddRank({1, 0}, seat);
  const auto half = index.AddRank({2, 0}, seat);
  const auto all = Hashes(1, kBlocks);
  still->Store({.hashes = all, .tokens = tokens}, {});
  half->Store({.hashes = std::span(all).first(kBlocks / 2),
               .tokens = std::span(tokens).first(kBlocks / 2 * kBlock)},
              {});
  std::atomic<bool> stop{false};
  const auto churn = [&](uint64_t seed) {
    Random random(seed);
    Epochs::Seat mine(epochs);
    for (int round = 0; round < 60; ++round) {
      const auto rank = index.AddRank({seed, 0}, mine);
      rank->Store({.hashes = all, .tokens = tokens}, {});
      const std::vector<TokenId> own = Tokens(2000, static_cast<TokenId>(random.Next() % 1000000));
      const auto names = Hashes(1'000'000, 2000);
      rank->Store({.hashes = names, .tokens = own}, {});
      for (int i = 0; i < 20; ++i) {
        const std::vector<uint64_t> gone = {1 + random.Below(kBlocks)};
        rank->Remove(gone, {});
      }
      rank->Remove(names, {});
    }
  };
  const auto watch = [&] {
    IndexReader reader(index);
    std::vector<uint64_t> storage;
    while (!stop.load(std::memory_order_relaxed)) {
      KeyChain keys(tokens, index.shape(), kKeySeed, storage);
      const auto depths = reader.Match(keys);
      ASSERT_EQ(depths[still->rank()].device(), kBlocks);
      ASSERT_EQ(depths[half->rank()].device(), kBlocks / 2);
    }
  };
  std::vector<std::jthread> writers;
  std::vector<std::jthread> readers;
  for (uint64_t i = 0; i < 2; ++i) readers.emplace_back(watch);
  for (uint64_t i = 0; i < 3; ++i) writers.emplace_back(churn, 10 + i);
  writers.clear();
  stop.store(true, std::memory_order_relaxed);
  readers.clear();
  EXPECT_EQ(index.CountBlocks(), kBlocks);
}

}  // namespace
}  // namespace fathom
