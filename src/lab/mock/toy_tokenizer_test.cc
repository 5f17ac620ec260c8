#include "lab/mock/toy_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;

// Pieces that make boundaries likely: spaces, special tokens and their beginnings, long characters,
// broken ones.
std::string RandomText(Random& random) {
  constexpr std::string_view kParts[] = {"a",
                                         " ",
                                         "\n",
                                         "word",
                                         "<|user|>",
                                         "<|end|>",
                                         "<|",
                                         "é",
                                         "水",
                                         "\U0001F419",
                                         "\xFF",
                                         "\xF0\x9F",
                                         "\xF0\x80\x80\x80",
                                         "\xF4\xBF\xBF\xBF",
                                         "\xC0\xAF",
                                         "\xED\xA0\x80"};
  std::string text;
  const uint64_t parts = random.Below(12);
  for (uint64_t i = 0; i < parts; ++i) {
    if (random.Below(4) == 0) {
      text += static_cast<char>(random.Next());
    } else {
      text += kParts[random.Below(std::size(kParts))];
    }
  }
  return text;
}

TEST(ToyTokenizer, GivesTheIdsThatItsHeaderPromises) {
  EXPECT_THAT(ToyTokens("a"), ElementsAre(97));
  EXPECT_THAT(ToyTokens("\xFF"), ElementsAre(255));
  EXPECT_THAT(ToyTokens("ab"), ElementsAre(512 + 97 * 256 + 98));
  EXPECT_THAT(ToyTokens("é"), ElementsAre(512 + 0xC3A9));
  EXPECT_THAT(ToyTokens("abc"), ElementsAre(66048 + 0x616263));
  EXPECT_THAT(ToyTokens("abcd"),
              ElementsAre(16843264 + (((97 * 128 + 98) * 128 + 99) * 128 + 100)));
  EXPECT_THAT(ToyTokens("\U0001F419"), ElementsAre(285278720 + 0x1F419));
  EXPECT_THAT(ToyTokens("<|system|><|end|>"), ElementsAre(256, 261));
}

TEST(ToyTokenizer, BeginsAPieceAtEverySpace) {
  EXPECT_EQ(ToyTokens("hi there").size(), 3u);  // "hi" " the" "re"
  EXPECT_EQ(ToyTokens("  a").size(), 2u);
  EXPECT_EQ(ToyTokens("a\nb").size(), 2u);
}

TEST(ToyTokenizer, GivesBackWhatItWasGiven) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = RandomText(random);
    ASSERT_EQ(ToyText(ToyTokens(text)), text);
  }
}

TEST(ToyTokenizer, GivesTheSameTokensForAnAnswerThatWasCutOff) {
  Random random(2);
  for (int i = 0; i < 5000; ++i) {
    std::string text = RandomText(random);
    while (text.find("<|") != text.npos) text.erase(text.find("<|"), 2);  // nobody generates these
    std::vector<TokenId> tokens = ToyTokens(text);
    if (tokens.empty()) continue;
    tokens.resize(random.Below(tokens.size()) + 1);
    ASSERT_EQ(ToyTokens(ToyText(tokens)), tokens) << text;
  }
}

TEST(ToyTokenizer, JoinsAtSpacesLineFeedsAndSpecialTokens) {
  Random random(3);
  for (int i = 0; i < 5000; ++i) {
    const std::string before = RandomText(random);
    for (const std::string_view begins : {" ", "\n", "<|end|>"}) {
      const std::string after = std::string(begins) + RandomText(random);
      std::vector<TokenId> joined = ToyTokens(before);
      AppendToyTokens(joined, after);
      ASSERT_EQ(ToyTokens(before + after), joined) << before << "|" << after;
    }
  }
}

TEST(ToyTokenizer, ReplacesIdsThatStandForNothing) {
  EXPECT_EQ(ToyText(std::vector<TokenId>{300, ~TokenId{0}}), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(ToyTokenizer, TakesAboutThreeAndAHalfCharactersOfEnglishForAToken) {
  const std::string_view text =
      "The lead line was cast from the chains and the leadsman called the depth in fathoms while "
      "the helmsman held her steady before the wind";
  const double per_token =
      static_cast<double>(text.size()) / static_cast<double>(ToyTokens(text).size());
  EXPECT_GT(per_token, 2.5);
  EXPECT_LT(per_token, 4.0);
}

}  // namespace
}  // namespace fathom
