#include "text/tokenizer/added_token_matcher.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using Parts = std::vector<std::string>;

AddedTokenMatcher MatcherOf(std::vector<AddedToken> tokens) {
  std::vector<std::string> contents;
  for (const AddedToken& token : tokens) contents.push_back(token.content);
  return {std::move(tokens), std::move(contents)};
}

// "1:<a>" for a token, "text" for what lies between.
Parts Split(const AddedTokenMatcher& matcher, std::string_view text) {
  std::vector<TextPiece> pieces;
  matcher.Split(text, pieces);
  Parts parts;
  std::string all;
  for (const TextPiece& piece : pieces) {
    all += piece.text;
    const std::string id = piece.is_token() ? std::to_string(piece.token) + ":" : "";
    parts.push_back(id + std::string(piece.text));
  }
  EXPECT_EQ(all, text) << "no gaps";
  return parts;
}

TEST(AddedTokenMatcher, FindsTheLeftmostAndThenTheLongest) {
  const AddedTokenMatcher matcher = MatcherOf({{.id = 1, .content = "<a"},
                                               {.id = 2, .content = "<a>"},
                                               {.id = 3, .content = "a><b>c"},
                                               {.id = 4, .content = "<b>"}});
  EXPECT_EQ(Split(matcher, "x<a><b>y<a"), (Parts{"x", "2:<a>", "4:<b>", "y", "1:<a"}));
  EXPECT_EQ(Split(matcher, "a><b><<b"), (Parts{"a>", "4:<b>", "<<b"}));
  EXPECT_EQ(Split(matcher, ""), Parts());
  EXPECT_EQ(Split(MatcherOf({}), "text"), Parts{"text"});
}

TEST(AddedTokenMatcher, TakesTheFirstOfEqualOnesAndNoEmptyOne) {
  const AddedTokenMatcher matcher =
      MatcherOf({{.id = 1, .content = ""}, {.id = 2, .content = "x"}, {.id = 3, .content = "x"}});
  EXPECT_EQ(Split(matcher, "axb"), (Parts{"a", "2:x", "b"}));
}

TEST(AddedTokenMatcher, TakesSpaceAlong) {
  const AddedTokenMatcher matcher = MatcherOf(
      {{.id = 1, .content = "L", .lstrip = true}, {.id = 2, .content = "R", .rstrip = true}});
  EXPECT_EQ(Split(matcher, "a \u3000L b"), (Parts{"a", "1: \u3000L", " b"}));
  EXPECT_EQ(Split(matcher, "a R \n b"), (Parts{"a ", "2:R \n ", "b"}));
  EXPECT_EQ(Split(matcher, "R  L"), (Parts{"2:R  ", "1:L"})) << "the first had it already";
  EXPECT_EQ(Split(matcher, " L"), Parts{"1: L"});
  EXPECT_EQ(Split(matcher, "a\xa0L"), (Parts{"a\xa0", "1:L"})) << "half a space is none";
}

TEST(AddedTokenMatcher, GivesSpaceBackToATokenThatIsSpace) {
  const AddedTokenMatcher matcher =
      MatcherOf({{.id = 1, .content = "R", .rstrip = true}, {.id = 2, .content = "  "}});
  EXPECT_EQ(Split(matcher, "R   x"), (Parts{"1:R", "2:  ", " x"}));
}

TEST(AddedTokenMatcher, FindsSingleWordsBetweenWords) {
  const AddedTokenMatcher matcher = MatcherOf({{.id = 1, .content = "to", .single_word = true}});
  EXPECT_EQ(Split(matcher, "to to."), (Parts{"1:to", " ", "1:to", "."}));
  EXPECT_EQ(Split(matcher, "tomato into"), Parts{"tomato into"});
  EXPECT_EQ(Split(matcher, "\u00e9to to\u0301"), Parts{"\u00e9to to\u0301"});
}

TEST(AddedTokenMatcher, KnowsWhetherLinesAreIndependent) {
  EXPECT_TRUE(MatcherOf({{.id = 1, .content = "x", .rstrip = true}}).keeps_lines_apart());
  EXPECT_FALSE(MatcherOf({{.id = 1, .content = "x", .lstrip = true}}).keeps_lines_apart());
  EXPECT_FALSE(MatcherOf({{.id = 1, .content = "\nx"}}).keeps_lines_apart());
}

}  // namespace
}  // namespace fathom
