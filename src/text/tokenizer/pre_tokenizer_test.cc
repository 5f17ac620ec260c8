#include "text/tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "testing/small_tokenizer.h"

namespace fathom {
namespace {

using Words = std::vector<std::string>;

Result<PreTokenizer> ReadPreTokenizer(std::string_view json) {
  return PreTokenizer::Parse(*Json::Parse(json));
}

Words Cut(std::string_view json, std::string_view text, bool first = true) {
  const Result<PreTokenizer> pre = ReadPreTokenizer(json);
  EXPECT_TRUE(pre) << pre.error().what;
  WordRoom room;
  EXPECT_TRUE(pre->Cut(text, first, room));
  Words words;
  for (const Word& word : room.words) words.emplace_back(word.text);
  return words;
}

std::string SplitJson(std::string_view behavior, bool invert) {
  return fmt::format(R"({{"type":"Split","pattern":{{"String":"-"}},"behavior":"{}","invert":{}}})",
                     behavior, invert);
}

TEST(PreTokenizer, SplitsInFiveWays) {
  constexpr std::string_view kText = "the-final--countdown";
  EXPECT_EQ(Cut(SplitJson("Removed", false), kText), (Words{"the", "final", "countdown"}));
  EXPECT_EQ(Cut(SplitJson("Isolated", false), kText),
            (Words{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(Cut(SplitJson("MergedWithPrevious", false), kText),
            (Words{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(Cut(SplitJson("MergedWithNext", false), kText),
            (Words{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(Cut(SplitJson("Contiguous", false), kText),
            (Words{"the", "-", "final", "--", "countdown"}));
}

TEST(PreTokenizer, SplitsAtWhatDoesNotMatch) {
  EXPECT_EQ(Cut(SplitJson("Removed", true), "a--b"), (Words{"-", "-"}));
  EXPECT_EQ(Cut(SplitJson("MergedWithPrevious", true), "a--b"), (Words{"a", "-", "-b"}));
  EXPECT_EQ(Cut(SplitJson("MergedWithNext", true), "a--b"), (Words{"a-", "-", "b"}));
}

TEST(PreTokenizer, SplitsAtExpressions) {
  EXPECT_EQ(
      Cut(R"({"type":"Split","pattern":{"Regex":"[0-9]{3}"},"behavior":"Isolated"})", "12345"),
      (Words{"123", "45"}));
}

TEST(PreTokenizer, KnowsDigitsAndPunctuation) {
  EXPECT_EQ(Cut(R"({"type":"Digits","individual_digits":true})", "a12\u00bd"),
            (Words{"a", "1", "2", "\u00bd"}));
  EXPECT_EQ(Cut(R"({"type":"Digits","individual_digits":false})", "a12b"), (Words{"a", "12", "b"}));
  EXPECT_EQ(Cut(R"({"type":"Punctuation"})", "a!?$\u3002b"),
            (Words{"a", "!", "?", "$", "\u3002", "b"}));
  EXPECT_EQ(Cut(R"({"type":"Punctuation","behavior":"Contiguous"})", "a!?"), (Words{"a", "!?"}));
  EXPECT_EQ(Cut(R"({"type":"Punctuation"})", "\u20ac"), Words{"\u20ac"}) << "a sign, not ASCII";
}

TEST(PreTokenizer, CutsAtSpace) {
  EXPECT_EQ(Cut(R"({"type":"WhitespaceSplit"})", " a,b\u3000\n c "), (Words{"a,b", "c"}));
  EXPECT_EQ(Cut(R"({"type":"Whitespace"})", " a_1,;b \u0301"), (Words{"a_1", ",;", "b", "\u0301"}));
  EXPECT_EQ(Cut(R"({"type":"CharDelimiterSplit","delimiter":"x"})", "axxb"), (Words{"a", "b"}));
  EXPECT_EQ(Cut(R"({"type":"BertPreTokenizer"})", "a b!"), (Words{"a", "b", "!"}));
}

TEST(PreTokenizer, WritesSpacesAsAnotherCharacter) {
  constexpr std::string_view kAlways =
      R"({"type":"Metaspace","replacement":"_","prepend_scheme":"always"})";
  EXPECT_EQ(Cut(kAlways, "a  b"), (Words{"_a", "_", "_b"}));
  EXPECT_EQ(Cut(kAlways, " a"), Words{"_a"});
  constexpr std::string_view kFirst =
      R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first","split":false})";
  EXPECT_EQ(Cut(kFirst, "a b"), Words{"_a_b"});
  EXPECT_EQ(Cut(kFirst, "a b", false), Words{"a_b"});
  EXPECT_EQ(Cut(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"never"})", "a b"),
            (Words{"a", "_b"}));
  EXPECT_EQ(Cut(R"({"type":"Metaspace","replacement":"_","add_prefix_space":false})", "a"),
            Words{"a"});
}

TEST(PreTokenizer, PrependsToTheFirstWordOfAPromptOnly) {
  EXPECT_EQ(Cut(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},
                    {"type":"Metaspace","replacement":"_","prepend_scheme":"first"}]})",
                "a b"),
            (Words{"_a", "b"}));
}

TEST(PreTokenizer, PutsASpaceBeforeBytesWhenAsked) {
  EXPECT_EQ(Cut(R"({"type":"ByteLevel","add_prefix_space":true})", "a b"), (Words{" a", " b"}));
  EXPECT_EQ(Cut(R"({"type":"ByteLevel","add_prefix_space":true})", " a"), Words{" a"});
  EXPECT_EQ(Cut(R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})", "a b"),
            Words{"a b"});
}

TEST(PreTokenizer, RecognisesTheCommonPatterns) {
  EXPECT_EQ(ReadPreTokenizer(R"({"type":"ByteLevel","add_prefix_space":false})")->pattern(),
            WordPattern::kGpt2);
  SmallTokenizer small;
  small.SetPattern(WordPattern::kDeepSeek);
  const Result<PreTokenizer> pre = ReadPreTokenizer(small.pre_tokenizer);
  ASSERT_TRUE(pre);
  EXPECT_EQ(pre->pattern(), WordPattern::kDeepSeek);
  EXPECT_TRUE(pre->byte_level());
}

TEST(PreTokenizer, RefusesWhatItDoesNotKnowByName) {
  const auto error = [](std::string_view json) {
    const Result<PreTokenizer> pre = ReadPreTokenizer(json);
    return pre ? "parsed" : pre.error().what;
  };
  EXPECT_EQ(error(R"({"type":"UnicodeScripts"})"), "not supported: pre_tokenizer UnicodeScripts");
  EXPECT_EQ(
      error(R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits"}]})"),
      "not supported: pre_tokenizer Digits behind ByteLevel");
  EXPECT_EQ(error(R"({"type":"Split","pattern":{"String":"a"},"behavior":"Odd"})"),
            "not supported: behavior Odd");
  EXPECT_EQ(error(R"({"type":"Split","pattern":{"String":""}})"),
            "not supported: an empty pattern");
  EXPECT_EQ(error(R"({"type":"Split","pattern":{}})"), "a pattern is neither String nor Regex");
  EXPECT_EQ(error(R"({"type":"Metaspace","replacement":"ab"})"),
            "'replacement' is not one character");
  EXPECT_EQ(error(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"odd"})"),
            "not supported: prepend_scheme odd");
  EXPECT_EQ(error(R"({"type":"Digits","individual_digits":1})"),
            "'individual_digits' is neither true nor false");
  EXPECT_EQ(error(R"({"type":"Sequence","pretokenizers":{}})"), "'pretokenizers' is not a list");
}

}  // namespace
}  // namespace fathom
