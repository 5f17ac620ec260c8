#include "router/routing/mark_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "base/random.h"

namespace fathom {
namespace {

TEST(MarkTable, MakesANodeOnceAndErasesIt) {
  MarkTable table;
  const RankLabel rank{1, 2};
  EXPECT_EQ(table.Find(7, rank), nullptr);
  table.Get(7, rank).running = 5;
  EXPECT_EQ(table.Get(7, rank).running, 5u);
  EXPECT_EQ(table.size(), 1u);
  table.Erase(8, rank);
  table.Erase(7, {1, 3});
  EXPECT_EQ(table.size(), 1u);
  table.Erase(7, rank);
  EXPECT_EQ(table.Find(7, rank), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

TEST(MarkTable, MakesFreshNodesInPlacesThatWereUsedBefore) {
  MarkTable table;
  table.Get(1, {}).running = 9;
  table.Erase(1, {});
  const MarkTable::Node& node = table.Get(2, {});
  EXPECT_TRUE(node.idle());
  EXPECT_FALSE(node.believed({}));
}

TEST(MarkTable, FindsAllRanksOfAMark) {
  MarkTable table;
  for (uint32_t i = 0; i < 5; ++i) table.Get(7, {1, i});
  table.Get(7 + 64, {9, 9});  // the same chain
  std::set<uint32_t> seen;
  EXPECT_TRUE(table.ForEach(7, [&](const MarkTable::Node& node) {
    EXPECT_EQ(node.rank.worker, 1u);
    seen.insert(node.rank.dp_rank);
  }));
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_FALSE(table.ForEach(7 + 128, [](const MarkTable::Node&) { FAIL(); }));
}

// Compared with a map: few keys that repeat often, and many keys that make it grow.
TEST(MarkTable, BehavesLikeAMap) {
  for (const uint64_t keys : {20u, 3000u}) {
    MarkTable table;
    std::map<std::pair<uint64_t, uint64_t>, uint32_t> model;
    Random random(keys);
    for (uint32_t i = 1; i <= 30'000; ++i) {
      const uint64_t mark = random.Below(keys) * 64;
      const RankLabel rank{random.Below(3), 0};
      const auto at = model.find({mark, rank.worker});
      const MarkTable::Node* const node = table.Find(mark, rank);
      ASSERT_EQ(node != nullptr, at != model.end());
      if (node != nullptr) {
        ASSERT_EQ(node->running, at->second);
      }
      if (random.Below(3) == 0) {
        table.Erase(mark, rank);
        model.erase({mark, rank.worker});
      } else {
        table.Get(mark, rank).running = i;
        model[{mark, rank.worker}] = i;
      }
      ASSERT_EQ(table.size(), model.size());
    }
    for (const auto& [name, value] : model) table.Erase(name.first, {name.second, 0});
    EXPECT_EQ(table.size(), 0u);
  }
}

}  // namespace
}  // namespace fathom
