#include "text/tokenizer/onig_syntax.h"

#include <gtest/gtest.h>

#include <vector>

#include "text/tokenizer/regular_expression.h"

namespace fathom {
namespace {

std::string Refusal(std::string_view pattern) {
  const Result<std::string> translated = PcreOfOnig(pattern);
  return translated ? *translated : translated.error().what;
}

// Whether the expression matches all of the text, at once.
bool Matches(std::string_view pattern, std::string_view text) {
  const Result<RegularExpression> expression = RegularExpression::Compile(pattern);
  EXPECT_TRUE(expression) << pattern << ": " << expression.error().what;
  std::vector<TextSpan> matches;
  EXPECT_TRUE(expression->FindAll(text, matches));
  return matches.size() == 1 && matches[0].begin == 0 && matches[0].end == text.size();
}

TEST(OnigSyntax, LeavesWhatBothReadAlike) {
  for (const std::string_view pattern : {R"(a|[b-d]+?(?:e)?(?=f)(?<!g)\.\n)", R"((?i:'s|'re)?)",
                                         R"(\p{Lu}\P{N}{1,3}x{2,})", R"([^\r\n\p{L}]?+\p{L}++)"}) {
    EXPECT_EQ(Refusal(pattern), pattern);
  }
}

TEST(OnigSyntax, MeansWhatOnigurumaMeans) {
  EXPECT_FALSE(Matches(R"(\s)", "\u180e")) << "no space since Unicode 6.3";
  EXPECT_TRUE(Matches(R"([\s])", "\u0085"));
  EXPECT_TRUE(Matches(R"(\S)", "\u180e"));
  EXPECT_TRUE(Matches(R"([\S])", "\u200b"));
  EXPECT_TRUE(Matches(R"(\w)", "\u0301")) << "a mark is part of a word";
  EXPECT_TRUE(Matches(R"(\w)", "\u00bd"));
  EXPECT_FALSE(Matches(R"([\w])", "\u00bd")) << "but not in a class";
  EXPECT_TRUE(Matches(R"(\h)", "f")) << "a hexadecimal digit";
  EXPECT_FALSE(Matches(R"(\h)", "\t"));
  EXPECT_TRUE(Matches(R"(\v)", "\x0b"));
  EXPECT_FALSE(Matches(R"(\v)", "\n"));
  EXPECT_TRUE(Matches(R"(\d\D)", "\u0967x"));
  EXPECT_TRUE(Matches(R"(\p{Han})", "\u4e2d"));
  EXPECT_FALSE(Matches(R"(\p{Han})", "\u3001")) << "scripts, not their extensions";
  EXPECT_TRUE(Matches(R"(\p{^L})", "1"));
  EXPECT_TRUE(Matches(R"(\u0041\x42\x{43})", "ABC"));
  EXPECT_TRUE(Matches(R"((?i:s))", "\u017f"));
  EXPECT_TRUE(Matches(R"(\b..\b)", "a\u0301"));
}

TEST(OnigSyntax, HasLinesWithoutBeingAsked) {
  const Result<RegularExpression> expression = RegularExpression::Compile("^.$");
  ASSERT_TRUE(expression);
  std::vector<TextSpan> matches;
  ASSERT_TRUE(expression->FindAll("a\nb\n", matches));
  EXPECT_EQ(matches.size(), 2);
}

TEST(OnigSyntax, RefusesWhatItCannotSay) {
  const std::vector<std::string_view> patterns = {
      "[a&&b]",      "[a[bc]]",     "[[:alpha:]]", "(?<name>a)", "a(?i)b",     "(?m:.)",
      "(?i:stress)", "(?i:\u00e4)", R"(\1)",       R"(\0)",      R"(\K)",      R"(\G)",
      R"(\X)",       R"(\R)",       R"([\W])",     R"(\xff)",    R"(\u12)",    R"(\x{})",
      "a{,3}",       "a{1,2}+",     "a{2}?",       "{",          R"(\p{Foo})", R"(\pL)",
      "[]a]",        R"(\p{)",      "[a",          "\\",         R"([\b])"};
  for (const std::string_view pattern : patterns) {
    const Result<std::string> translated = PcreOfOnig(pattern);
    EXPECT_FALSE(translated) << pattern;
  }
  EXPECT_EQ(Refusal(R"(\p{Foo})"), "not supported: \\p{Foo} in an expression");
}

}  // namespace
}  // namespace fathom
