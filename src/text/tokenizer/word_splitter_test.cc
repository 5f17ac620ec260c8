// The hand-made splitters against the expression engine, which is their oracle.
#include "text/tokenizer/word_splitter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "text/tokenizer/regular_expression.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

using Words = std::vector<std::string>;

constexpr WordPattern kPatterns[] = {WordPattern::kGpt2,         WordPattern::kOneDigit,
                                     WordPattern::kThreeDigits,  WordPattern::kCased,
                                     WordPattern::kCasedEndings, WordPattern::kDeepSeek};

Words SplitWords(WordPattern pattern, std::string_view text) {
  Words words;
  WordSplitter splitter(pattern, text);
  for (size_t at = 0; at < text.size();) {
    const size_t end = splitter.EndOfWord(at);
    EXPECT_GT(end, at);
    if (end <= at) break;
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// Each word cut at the matches of an expression; what lies between them is kept.
Words CutBy(const RegularExpression& expression, const Words& words) {
  Words out;
  for (const std::string& word : words) {
    std::vector<TextSpan> matches;
    EXPECT_TRUE(expression.FindAll(word, matches));
    size_t done = 0;
    for (const TextSpan& match : matches) {
      if (match.begin > done) out.push_back(word.substr(done, match.begin - done));
      out.push_back(word.substr(match.begin, match.end - match.begin));
      done = match.end;
    }
    if (done < word.size()) out.push_back(word.substr(done));
  }
  return out;
}

Words OracleSplit(WordPattern pattern, std::string_view text) {
  Words words;
  if (!text.empty()) words.emplace_back(text);
  for (const std::string_view source : ExpressionsOf(pattern)) {
    const Result<RegularExpression> expression = RegularExpression::Compile(source);
    EXPECT_TRUE(expression);
    words = CutBy(*expression, words);
  }
  return words;
}

TEST(WordSplitter, KnowsPatternsByTheirText) {
  for (const WordPattern pattern : kPatterns) {
    EXPECT_EQ(WordPatternOf(ExpressionsOf(pattern)), pattern);
  }
  const std::string_view other[] = {R"(\s+)"};
  EXPECT_EQ(WordPatternOf(other), std::nullopt);
  EXPECT_EQ(WordPatternOf({}), std::nullopt);
}

TEST(WordSplitter, SplitsASentence) {
  const std::string_view text = "I'll say 'Hi' 1234 times...\n\n  OK?";
  EXPECT_EQ(SplitWords(WordPattern::kThreeDigits, text),
            (Words{"I", "'ll", " say", " '", "Hi", "'", " ", "123", "4", " times", "...\n\n", " ",
                   " OK", "?"}));
  EXPECT_EQ(SplitWords(WordPattern::kOneDigit, "a12"), (Words{"a", "1", "2"}));
  EXPECT_EQ(SplitWords(WordPattern::kGpt2, "a 12\n\nb"), (Words{"a", " 12", "\n", "\n", "b"}));
  EXPECT_EQ(SplitWords(WordPattern::kCased, "camelCase HTTPServer"),
            (Words{"camel", "Case", " HTTPServer"}));
  EXPECT_EQ(SplitWords(WordPattern::kCasedEndings, "don't/\n/x"), (Words{"don't", "/\n/", "x"}));
  EXPECT_EQ(SplitWords(WordPattern::kDeepSeek, "x\u4e2d\u30a2\u30fb1\x01\x02 y"),
            (Words{"x", "\u4e2d\u30a2", "\u30fb", "1", "\x01\x02", " y"}));
}

TEST(WordSplitter, CoversBytesThatAreNotUtf8) {
  const std::string text =
      "a\xff\xc3 b\xe4\xb8\n\x80"
      "1\xed\xa0\x80'\xc5s";
  for (const WordPattern pattern : kPatterns) {
    std::string all;
    for (const std::string& word : SplitWords(pattern, text)) all += word;
    EXPECT_EQ(all, text);
  }
}

TEST(WordSplitter, AgreesWithTheExpressionsOnDifficultText) {
  const std::vector<std::string> texts = {
      "",
      "'s'S'\u017f'\u212a'T'rE'VE'lL'l'm'd''",
      "we'LL x'\u017fy '",
      "\r\n\r\n \t\n  x\n \n",
      "   ",
      "\n",
      " \n ",
      "a   ",
      "a   b",
      "\u00a0\u2003x",
      "\u3000\u0085\u180ey",
      "\u0301ABC \u0301abc \u0301 \u0301\u0301 1\u0301",
      "\u4e2d\u6587ABCabc\u4e2dA\u4e2dAB\u0301C",
      "\u01c5\u02b0\u01c6 \u02b0\u02b0A \u00aa",
      "!\n/\n//x \u2026\u2026\n\r/ ",
      "\u0967\u0968\u0969\u096a \u00b2\u00bd\u2167 1234567",
      "\u30a0\u30fb\u3097\u3099 \u304b\u3099 \u9fa5\u9fa6",
      "\u0378\ue000 \u0378a \ufffe\uffff",
      "x\u200db \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd",
      "$x_y+z ~a \"b c\" .NET @me #1",
  };
  for (const WordPattern pattern : kPatterns) {
    for (const std::string& text : texts) {
      EXPECT_EQ(SplitWords(pattern, text), OracleSplit(pattern, text))
          << static_cast<int>(pattern) << ": " << text;
    }
  }
}

// Code points that both libraries have known for long.
rc::Gen<uint32_t> GenCodePoint() {
  return rc::gen::weightedOneOf<uint32_t>(
      {{6, rc::gen::elementOf(std::vector<uint32_t>{'a', 'B', 'z', 'S', '\'', ' ', '\n', '\r', '1',
                                                    '/', '!', '\t', '_', 's', 'l', 'L', 'v', 'e'})},
       {2, rc::gen::inRange<uint32_t>(0, 0x370)},
       {2, rc::gen::inRange<uint32_t>(0x400, 0x530)},
       {2, rc::gen::elementOf(std::vector<uint32_t>{
               0x301,  0x323,   0x4e2d, 0x3042, 0x30a2, 0x30fb, 0xac00, 0x1c5,  0x2b0, 0x17f,
               0x212a, 0x85,    0xa0,   0x2003, 0x2028, 0x3000, 0x180e, 0x200b, 0x967, 0xbd,
               0x2167, 0x1f600, 0x2014, 0x20ac, 0xe000, 0x378,  0x93f,  0x94d})}});
}

RC_GTEST_PROP(WordSplitterProperty, AgreesWithTheExpressions, ()) {
  const auto size = *rc::gen::inRange<size_t>(0, 40);
  std::string text;
  for (const uint32_t value : *rc::gen::container<std::vector<uint32_t>>(size, GenCodePoint())) {
    AppendCodePoint(text, value);
  }
  for (const WordPattern pattern : kPatterns) {
    RC_ASSERT(SplitWords(pattern, text) == OracleSplit(pattern, text));
  }
}

}  // namespace
}  // namespace fathom
