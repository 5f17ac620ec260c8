#include "router/events/early_words.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

constexpr size_t kLarge = size_t{1} << 20;

PolledWord WordOf(std::string body) { return {.view = {}, .body = std::move(body), .polls = true}; }

TEST(EarlyWords, AreTakenOnceInOrder) {
  ByteBudget budget(kLarge);
  EarlyWords words;
  words.Keep(budget, WordOf("a"));
  words.Keep(budget, WordOf(""));
  words.Keep(budget, WordOf("b"));
  const auto taken = words.Take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].body, "a");
  EXPECT_EQ(taken[1].body, "b");
  EXPECT_TRUE(words.Take().empty());
}

TEST(EarlyWords, AreBounded) {
  ByteBudget budget(2 * kLarge);
  EarlyWords words;
  for (int i = 0; i < 3; ++i) words.Keep(budget, WordOf(std::string(kLarge, 'x')));
  EXPECT_EQ(budget.used(), 2 * kLarge);
  EXPECT_EQ(words.Take().size(), 2u);
  EXPECT_EQ(budget.used(), 0u);
  for (size_t i = 0; i < EarlyWords::kMost + 5; ++i) words.Keep(budget, WordOf("x"));
  EXPECT_EQ(words.Take().size(), EarlyWords::kMost);
}

TEST(EarlyWords, SmallOnesAreCountedTogether) {
  constexpr size_t kSmall = 32 << 10;
  ByteBudget budget(kLarge);
  EarlyWords words;
  for (size_t i = 0; i < EarlyWords::kMost; ++i) {
    words.Keep(budget, WordOf(std::string(kSmall, 'x')));
  }
  EXPECT_EQ(budget.used(), kLarge);
  EXPECT_EQ(words.Take().size(), kLarge / kSmall);
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace fathom
