#include "lab/bench/plain_index.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using Kind = IndexOperation::Kind;
using Depths = std::vector<uint32_t>;

const std::vector<uint64_t> kPrompt = {1, 2, 3};

Depths Match(const PlainIndex& index, uint32_t ranks) {
  Depths depths(ranks);
  index.Match(kPrompt, depths);
  return depths;
}

TEST(PlainIndex, SaysHowFarEveryRankHoldsThePrompt) {
  PlainIndex index(66);
  const std::vector<uint64_t> two = {101, 1, 102, 2};
  const std::vector<uint64_t> third = {103, 3};
  index.Change({Kind::kStored, 1, {}, two});
  index.Change({Kind::kStored, 65, {}, two});
  index.Change({Kind::kStored, 65, 102, third});
  index.Change({Kind::kStored, 0, 102, third});  // its predecessor is unknown there
  Depths wanted(66);
  wanted[1] = 2;
  wanted[65] = 3;
  EXPECT_EQ(Match(index, 66), wanted);
  EXPECT_EQ(index.held_blocks(), 5u);
}

TEST(PlainIndex, HoldsABlockUntilItsLastCopyHasLeft) {
  PlainIndex index(1);
  const std::vector<uint64_t> all = {101, 1, 102, 2, 103, 3};
  const std::vector<uint64_t> second = {102};
  index.Change({Kind::kStored, 0, {}, all});
  index.Change({Kind::kStored, 0, {}, all});
  index.Change({Kind::kRemoved, 0, {}, second});
  EXPECT_EQ(Match(index, 1), Depths{3});
  index.Change({Kind::kRemoved, 0, {}, second});
  EXPECT_EQ(Match(index, 1), Depths{1});
  index.Change({Kind::kCleared, 0, {}, {}});
  EXPECT_EQ(Match(index, 1), Depths{0});
  EXPECT_EQ(index.held_blocks(), 0u);
}

}  // namespace
}  // namespace fathom
