#include "text/tokens/prompt_marks.h"

#include <gtest/gtest.h>

#include <numeric>

namespace fathom {
namespace {

std::vector<TokenId> Tokens(size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

std::vector<PromptMark> Marks(const std::vector<TokenId>& tokens, uint64_t seed = 7) {
  std::vector<PromptMark> marks;
  MarkPrompt(tokens, seed, marks);
  return marks;
}

TEST(PromptMarks, StandEvery64TokensAtFirst) {
  const auto marks = Marks(Tokens(300));
  ASSERT_EQ(marks.size(), 4u);
  EXPECT_EQ(marks[0].tokens, 64u);
  EXPECT_EQ(marks[3].tokens, 256u);
  EXPECT_TRUE(Marks(Tokens(63)).empty());
}

TEST(PromptMarks, AHundredReachThroughALongPrompt) {
  const auto marks = Marks(Tokens(100'000));
  EXPECT_LT(marks.size(), 110u);
  EXPECT_GT(marks.back().tokens, 93'000u);
  for (size_t i = 1; i < marks.size(); ++i) {
    EXPECT_LE(marks[i].tokens - marks[i - 1].tokens, std::max(64u, marks[i - 1].tokens / 16));
  }
}

TEST(PromptMarks, AreSharedExactlyUpToWhereThePromptsPart) {
  const auto tokens = Tokens(5000);
  for (const size_t parting : {0u, 63u, 64u, 1000u, 4999u}) {
    auto other = tokens;
    other[parting] = 0;
    const auto a = Marks(tokens);
    const auto b = Marks(other);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i] == b[i], a[i].tokens <= parting) << i;
  }
}

TEST(PromptMarks, DifferBetweenNamespaces) {
  EXPECT_NE(Marks(Tokens(64), 1), Marks(Tokens(64), 2));
}

}  // namespace
}  // namespace fathom
