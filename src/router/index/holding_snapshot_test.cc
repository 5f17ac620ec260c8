#include "router/index/holding_snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "router/index/prefix_index.h"
#include "testing/index_model.h"
#include "testing/sanitizers.h"

namespace fathom {
namespace {

constexpr uint32_t kSize = 4;

// An index with one rank.
struct Holder {
  explicit Holder(uint64_t secret, size_t most = size_t{1} << 30)
      : meter(most), index({.size = kSize}, epochs, meter, secret) {
    rank = index.AddRank({7, 2}, seat);
  }

  Depth DepthOf(std::span<const uint64_t> locals) {
    std::vector<uint64_t> storage;
    KeyChain keys(locals, storage);
    return reader.Match(keys)[rank->rank()];
  }
  uint32_t DepthOf(std::span<const TokenId> tokens, uint64_t seed) {
    std::vector<uint64_t> storage;
    KeyChain keys(tokens, index.shape(), seed, storage);
    return reader.Match(keys)[rank->rank()].device();
  }

  MemoryMeter meter;
  Epochs epochs;
  PrefixIndex index;
  Epochs::Seat seat{epochs};
  IndexReader reader{index};
  std::unique_ptr<RankHoldings> rank;
};

SnapshotHead Head() {
  return {.rank = {7, 2},
          .shape = {.size = kSize, .pairs = false},
          .shape_group = 3,
          .mark = {.sequence = 41, .fingerprints = {5, 6, 7}}};
}

std::string Exported(const Holder& holder, size_t slice = 3) {
  HoldingExport exporting(*holder.rank, Head());
  while (!exporting.Advance(slice)) {
  }
  return exporting.Take();
}

HoldingImport::Step ImportInto(Holder& holder, const HoldingSnapshot& snapshot, size_t slice = 50) {
  HoldingImport importing(*holder.rank, snapshot);
  auto step = importing.Advance(slice);
  while (step == HoldingImport::Step::kMore) step = importing.Advance(slice);
  return step;
}

std::vector<TokenId> Prompt(size_t blocks, TokenId from) {
  std::vector<TokenId> tokens(blocks * kSize);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

void StorePrompt(Holder& holder, uint64_t first_hash, const std::vector<TokenId>& tokens,
                 uint64_t seed = kKeySeed) {
  std::vector<uint64_t> hashes(tokens.size() / kSize);
  std::iota(hashes.begin(), hashes.end(), first_hash);
  holder.rank->Store({.hashes = hashes, .tokens = tokens, .seed = seed}, {});
}

TEST(HoldingSnapshot, SaysWhatItReflects) {
  Holder from(1);
  StorePrompt(from, 0, Prompt(6, 100));
  const auto snapshot = HoldingSnapshot::Open(Exported(from));
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().what;
  EXPECT_EQ(snapshot->head(), Head());
  EXPECT_EQ(snapshot->blocks(), 6u);
  ASSERT_EQ(snapshot->lanes().size(), 1u);
}

TEST(HoldingSnapshot, IsTheSameInAnotherProcessWithAnotherSecret) {
  Holder from(1);
  const uint64_t salted = NamespaceSeed("", "salt");
  StorePrompt(from, 0, Prompt(6, 100));  // a block's hash is 0
  StorePrompt(from, 50, Prompt(3, 900), salted);
  StorePrompt(from, 0, Prompt(2, 100));  // copies
  const auto snapshot = HoldingSnapshot::Open(Exported(from));
  ASSERT_TRUE(snapshot.has_value());
  Holder to(0x123456789);
  ASSERT_EQ(ImportInto(to, *snapshot), HoldingImport::Step::kDone);
  EXPECT_EQ(to.DepthOf(Prompt(6, 100), kKeySeed), 6u);
  EXPECT_EQ(to.DepthOf(Prompt(3, 900), salted), 3u);
  EXPECT_EQ(to.DepthOf(Prompt(3, 900), kKeySeed), 0u);
  EXPECT_EQ(to.rank->counters().held.value(), 9u);
  // The engine goes on: a child in the namespace of its parent, and one of two copies is removed.
  const std::vector<TokenId> longer = Prompt(4, 900);
  const std::vector<uint64_t> next = {53};
  to.rank->Store({.parent = 52, .hashes = next, .tokens = std::span(longer).subspan(3 * kSize)},
                 {});
  EXPECT_EQ(to.DepthOf(longer, salted), 4u);
  const std::vector<uint64_t> twice = {1};
  to.rank->Remove(twice, {});
  EXPECT_EQ(to.DepthOf(Prompt(6, 100), kKeySeed), 6u);
  to.rank->Remove(twice, {});
  EXPECT_EQ(to.DepthOf(Prompt(6, 100), kKeySeed), 1u);
}

TEST(HoldingSnapshot, AnExportOfTheCopyIsAsLong) {
  Holder from(1);
  Random random(3);
  for (uint64_t i = 0; i < 200; ++i) {
    StorePrompt(from, 1000 * i, Prompt(1 + random.Below(20), static_cast<TokenId>(10'000 * i)));
  }
  for (uint64_t i = 0; i < 200; i += 3) {
    const std::vector<uint64_t> middle = {1000 * i + random.Below(20)};
    from.rank->Remove(middle, {});
  }
  const std::string first = Exported(from);
  const auto snapshot = HoldingSnapshot::Open(first);
  ASSERT_TRUE(snapshot.has_value());
  Holder to(2);
  ASSERT_EQ(ImportInto(to, *snapshot), HoldingImport::Step::kDone);
  EXPECT_EQ(to.rank->counters().held.value(), from.rank->counters().held.value());
  EXPECT_EQ(to.rank->counters().ghosts.value(), from.rank->counters().ghosts.value());
  EXPECT_EQ(Exported(to, 1000).size(), first.size());
  EXPECT_LT(static_cast<double>(first.size()),
            17.5 * static_cast<double>(snapshot->blocks()) + 200);
  EXPECT_GE(HoldingExport::BytesFor(*from.rank), first.size());
}

// Depth is that of all cache groups together.
TEST(HoldingSnapshot, WhileItIsTakenOverNoGroupStandsForAll) {
  Holder from(1);
  const std::vector<TokenId> tokens = Prompt(40, 100);
  std::vector<uint64_t> hashes(40);
  std::iota(hashes.begin(), hashes.end(), 1);
  from.rank->Store({.hashes = hashes, .tokens = tokens}, {});
  // The window's blocks at the end of the prompt were evicted.
  StoredRun window{.hashes = hashes, .tokens = tokens, .kind = GroupKind::kWindow};
  window.part.group = 1;
  window.window = 2 * kSize;
  window.hashes = window.hashes.first(10);
  window.tokens = window.tokens.first(10 * kSize);
  from.rank->Store(window, {});
  EXPECT_EQ(from.DepthOf(tokens, kKeySeed), 10u);
  const auto snapshot = HoldingSnapshot::Open(Exported(from));
  ASSERT_TRUE(snapshot.has_value());
  Holder to(2);
  HoldingImport importing(*to.rank, *snapshot);
  for (auto step = HoldingImport::Step::kMore; step == HoldingImport::Step::kMore;) {
    step = importing.Advance(1);
    ASSERT_NE(step, HoldingImport::Step::kInvalid);
    EXPECT_LE(to.DepthOf(tokens, kKeySeed), 10u);
  }
  EXPECT_EQ(to.DepthOf(tokens, kKeySeed), 10u);
}

TEST(HoldingSnapshot, ReportsLessWhenMemoryIsShort) {
  Holder from(1);
  for (uint64_t i = 0; i < 2000; ++i) {
    StorePrompt(from, 100 * i, Prompt(10, static_cast<TokenId>(1000 * i)));
  }
  const auto snapshot = HoldingSnapshot::Open(Exported(from, 100'000));
  ASSERT_TRUE(snapshot.has_value());
  Holder to(2, 600 << 10);
  ASSERT_EQ(ImportInto(to, *snapshot), HoldingImport::Step::kDone);
  EXPECT_GT(to.rank->counters().held.value(), 1000u);
  EXPECT_LT(to.rank->counters().held.value(), 20'000u);
  EXPECT_GT(to.rank->counters().refused.value(), 0u);
  size_t reachable = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    reachable += to.DepthOf(Prompt(10, static_cast<TokenId>(1000 * i)), kKeySeed);
  }
  EXPECT_EQ(reachable, to.rank->counters().held.value()) << "prefixes only";
}

TEST(HoldingSnapshot, RefusesWhatIsDamaged) {
  Holder from(1);
  StorePrompt(from, 1, Prompt(6, 100));
  const std::string good = Exported(from);
  EXPECT_FALSE(HoldingSnapshot::Open("").has_value());
  EXPECT_FALSE(HoldingSnapshot::Open(good.substr(0, good.size() - 1)).has_value());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    EXPECT_FALSE(HoldingSnapshot::Open(bad).has_value()) << i;
  }
}

// With a digest that fits: the reader relies on nothing else.
TEST(HoldingSnapshot, SurvivesEveryWrongByteBehindAFittingDigest) {
  Holder from(1);
  StorePrompt(from, 1, Prompt(6, 100));
  StorePrompt(from, 1, Prompt(2, 100));
  const std::vector<uint64_t> middle = {4};
  from.rank->Remove(middle, {});
  const std::string good = Exported(from);
  for (size_t i = 0; i + 16 < good.size(); ++i) {
    for (const int change : {1, 2, 4, 8, 16, 128, 255}) {
      std::string content = good.substr(0, good.size() - 16);
      content[i] = static_cast<char>(content[i] ^ change);
      const auto snapshot = HoldingSnapshot::Open(content + HoldingSnapshot::DigestOf(content));
      if (!snapshot) continue;
      Holder to(2);
      (void)ImportInto(to, *snapshot);
      to.rank->Clear();
      EXPECT_EQ(to.rank->counters().held.value(), 0u);
      EXPECT_EQ(to.rank->counters().ghosts.value(), 0u);
    }
  }
}

TEST(HoldingSnapshot, RefusesKeysOfAnotherKind) {
  Holder from(1);
  StorePrompt(from, 1, Prompt(1, 100));
  std::string content = Exported(from);
  content.resize(content.size() - 16);
  content[std::string_view("fathom-holdings").size() + 4] ^= 1;
  const auto snapshot = HoldingSnapshot::Open(content + HoldingSnapshot::DigestOf(content));
  ASSERT_FALSE(snapshot.has_value());
  EXPECT_EQ(snapshot.error().blame, Blame::kCaller);
}

// --- the copy of any history, and its later life ------------------------------------------------

struct CopiedLife {
  std::vector<ModelGroup> groups;
  size_t tiers;
};

const CopiedLife kCopiedLives[] = {
    {{{0, 0}}, 1},
    {{{0, 0}}, 3},
    {{{0, 2 * kSize}, {1, 0}}, 2},
};

class CopiedLives : public testing::TestWithParam<int> {};

void LiveAndCopy(const CopiedLife& life, uint64_t seed) {
  Random random(seed);
  const PromptTree tree(20 + random.Below(100), random);
  std::optional<Holder> from(std::in_place, random.Next());
  std::optional<Holder> copy;
  bool exact = false;  // nothing was left out of the copy
  for (int step = 0; step < 300; ++step) {
    const ModelGroup& group = life.groups[random.Below(life.groups.size())];
    const CachePart part{static_cast<Tier>(random.Below(life.tiers)), group.number};
    const std::vector<size_t> path = tree.Path(random.Below(tree.blocks.size()));
    const uint64_t what = random.Below(100);
    if (random.Below(40) == 0) {
      exact = from->rank->counters().orphans.value() == 0;
      const auto snapshot = HoldingSnapshot::Open(Exported(*from, 1 + random.Below(30)));
      ASSERT_TRUE(snapshot.has_value());
      copy.emplace(random.Next());
      ASSERT_EQ(ImportInto(*copy, *snapshot, 1 + random.Below(30)), HoldingImport::Step::kDone);
    }
    std::vector<uint64_t> hashes;
    const auto both = [&](const auto& change) {
      change(*from->rank);
      if (copy) change(*copy->rank);
    };
    if (what < 50) {
      const size_t begin = random.Below(3) == 0 ? random.Below(path.size()) : 0;
      for (size_t i = begin; i < path.size(); ++i) hashes.push_back(tree.blocks[path[i]].hash);
      const std::vector<uint64_t> locals =
          tree.Locals({path.begin() + static_cast<ptrdiff_t>(begin), path.end()});
      StoredRun run{.hashes = hashes,
                    .locals = locals,
                    .part = part,
                    .kind = group.window > 0 ? GroupKind::kWindow : GroupKind::kFull,
                    .window = group.window};
      if (begin > 0) run.parent = tree.blocks[path[begin - 1]].hash;
      both([&](RankHoldings& rank) { rank.Store(run, {}); });
    } else if (what < 98) {
      for (size_t i = path.size() - random.Below(path.size()); i > 0; --i) {
        if (random.Below(4) != 0) hashes.push_back(tree.blocks[path[i - 1]].hash);
      }
      both([&](RankHoldings& rank) { rank.Remove(hashes, part); });
    } else {
      both([&](RankHoldings& rank) { rank.Clear(); });
      exact = true;
    }
    if (!copy) continue;
    const std::vector<uint64_t> locals = tree.Locals(tree.Path(random.Below(tree.blocks.size())));
    const Depth expected = from->DepthOf(locals);
    const Depth depth = copy->DepthOf(locals);
    const bool less = std::ranges::equal(depth.blocks, expected.blocks, std::less_equal());
    ASSERT_TRUE(exact ? depth == expected : less)
        << "seed " << seed << " step " << step << ": " << testing::PrintToString(depth.blocks)
        << " instead of " << testing::PrintToString(expected.blocks);
  }
}

TEST_P(CopiedLives, TheCopyOfAnyHistoryLivesOnLikeTheOriginal) {
  for (uint64_t seed = 1; seed <= (kSanitized ? 8 : 80); ++seed) {
    ASSERT_NO_FATAL_FAILURE(LiveAndCopy(kCopiedLives[GetParam()], seed));
  }
}

INSTANTIATE_TEST_SUITE_P(HoldingSnapshot, CopiedLives, testing::Range(0, 3));

}  // namespace
}  // namespace fathom
