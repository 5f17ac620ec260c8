#include "text/tokenizer/regular_expression.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

using Spans = std::vector<std::pair<size_t, size_t>>;

Spans FindAll(std::string_view pattern, std::string_view text) {
  const Result<RegularExpression> expression = RegularExpression::Compile(pattern);
  EXPECT_TRUE(expression) << expression.error().what;
  std::vector<TextSpan> found;
  EXPECT_TRUE(expression->FindAll(text, found));
  Spans spans;
  for (const TextSpan& span : found) spans.emplace_back(span.begin, span.end);
  return spans;
}

TEST(RegularExpression, FindsMatchesFromLeftToRight) {
  EXPECT_EQ(FindAll(R"(\d+)", "a12b3"), (Spans{{1, 3}, {4, 5}}));
  EXPECT_EQ(FindAll("x", ""), Spans());
  EXPECT_EQ(FindAll("\u00fc", "\u00fc\u00fc"), (Spans{{0, 2}, {2, 4}}));
}

TEST(RegularExpression, HasNoEmptyMatchRightBehindAnother) {
  EXPECT_EQ(FindAll("a*", "baac"), (Spans{{0, 0}, {1, 3}, {4, 4}}));
  EXPECT_EQ(FindAll("", "\u00fc"), (Spans{{0, 0}, {2, 2}}));
}

TEST(RegularExpression, LooksBehindWhatItHasMatched) {
  EXPECT_EQ(FindAll("(?<=a)a", "aaa"), (Spans{{1, 2}, {2, 3}}));
}

TEST(RegularExpression, MatchesNothingInBytesThatAreNotUtf8) {
  EXPECT_EQ(FindAll(".+",
                    "ab\xff\xfe"
                    "c"),
            (Spans{{0, 2}, {4, 5}}));
}

TEST(RegularExpression, GivesUpRatherThanHang) {
  const Result<RegularExpression> expression = RegularExpression::Compile("(a+)+$");
  ASSERT_TRUE(expression);
  std::vector<TextSpan> found;
  const Result<void> done = expression->FindAll(std::string(200, 'a') + "b", found);
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().what.starts_with("an expression gave up: ")) << done.error().what;
}

TEST(RegularExpression, SaysWhatIsWrongWithIt) {
  EXPECT_TRUE(
      RegularExpression::Compile("(a").error().what.starts_with("an expression is invalid: "));
  EXPECT_EQ(
      RegularExpression::Compile(std::string(RegularExpression::kMaxPattern + 1, 'a')).error().what,
      "an expression is too long");
}

}  // namespace
}  // namespace fathom
