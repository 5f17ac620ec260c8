#include "router/routing/shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace fathom {
namespace {

TEST(Shuffle, GivesEachPositionItsOwnTurn) {
  for (const uint32_t count : {1u, 2u, 5u, 33u, 64u, 65u, 4096u}) {
    const Shuffle shuffle(count * 7, count);
    std::set<uint32_t> turns;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t turn = shuffle.TurnOf(i);
      EXPECT_LT(turn, shuffle.turns());
      EXPECT_EQ(shuffle.PositionAt(turn), i);
      turns.insert(turn);
    }
    EXPECT_EQ(turns.size(), count);
  }
}

// Any few positions, neighbours or not, are first equally often.
TEST(Shuffle, PrefersNone) {
  const std::vector<std::vector<uint32_t>> sets = {{1, 2, 4}, {0, 1}, {0, 50, 99}, {3, 4, 5, 6}};
  for (const uint32_t count : {5u, 8u, 100u, 4096u}) {
    for (const std::vector<uint32_t>& set : sets) {
      if (set.back() >= count) continue;
      std::vector<int> first(set.size());
      Random random(1);
      for (size_t i = 0; i < 4000 * set.size(); ++i) {
        const Shuffle shuffle(random.Next(), count);
        const auto at = std::ranges::min_element(
            set, {}, [&](uint32_t position) { return shuffle.TurnOf(position); });
        ++first[static_cast<size_t>(at - set.begin())];
      }
      for (const int times : first) EXPECT_NEAR(times, 4000, 280) << count;
    }
  }
}

}  // namespace
}  // namespace fathom
