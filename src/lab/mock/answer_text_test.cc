#include "lab/mock/answer_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/mock/toy_tokenizer.h"

namespace fathom {
namespace {

using ::testing::StartsWith;

const std::vector<TokenId> kPrompt = {1, 2, 3};

std::vector<TokenId> AnswerTokens(const AnswerSeed& seed, std::span<const TokenId> prompt,
                                  size_t count) {
  return *MakeAnswer(seed, prompt, count, MockTokenizer(MockOptions()));
}

TEST(MakeAnswer, SaysWhoSpeaksAndHasAsManyTokensAsAskedFor) {
  const auto answer = AnswerTokens({.speaker = "m", .rank = 3}, kPrompt, 50);
  EXPECT_EQ(answer.size(), 50u);
  EXPECT_THAT(ToyText(answer), StartsWith("m/3: "));
}

TEST(MakeAnswer, DependsOnThePromptTheSeedAndTheChoice) {
  const auto text = [](AnswerSeed seed, std::vector<TokenId> prompt) {
    return ToyText(AnswerTokens(seed, prompt, 50));
  };
  EXPECT_EQ(text({.speaker = "m"}, kPrompt), text({.speaker = "m"}, kPrompt));
  EXPECT_NE(text({.speaker = "m"}, kPrompt), text({.speaker = "m"}, {1, 2}));
  EXPECT_NE(text({.speaker = "m"}, kPrompt), text({.speaker = "m", .choice = 1}, kPrompt));
  EXPECT_NE(text({.speaker = "m"}, kPrompt), text({.speaker = "m", .seed = 9}, kPrompt));
}

TEST(MakeAnswer, GivesTheSameTokensWhenItsTextIsAskedAbout) {
  for (size_t count = 1; count < 60; ++count) {
    const auto answer = AnswerTokens({.speaker = "mock-8100"}, kPrompt, count);
    EXPECT_EQ(ToyTokens(ToyText(answer)), answer);
  }
}

TEST(StopFinder, LetsEverythingThroughWithoutStops) {
  StopFinder finder({});
  EXPECT_EQ(finder.Add("ab"), "ab");
  EXPECT_EQ(finder.Add("c"), "c");
  EXPECT_EQ(finder.Rest(), "");
  EXPECT_EQ(finder.said(), "abc");
}

TEST(StopFinder, HoldsBackACharacterUntilAllOfItIsThere) {
  StopFinder finder({});
  EXPECT_EQ(finder.Add("a\xF0\x9F"), "a");
  EXPECT_EQ(finder.Add("\x8C"), "");
  EXPECT_EQ(finder.Add("\x8A"
                       "b\xC3"),
            "\xF0\x9F\x8C\x8A"
            "b");
  EXPECT_EQ(finder.Rest(), "\xC3");
}

TEST(StopFinder, CutsBeforeTheFirstStopHoweverItIsSplit) {
  const std::vector<std::string> stops = {"xyz", "END"};
  const std::string text = "some text ENxy END xyz";
  for (size_t size = 1; size < text.size(); ++size) {
    StopFinder finder(stops);
    std::string said;
    for (size_t at = 0; at < text.size(); at += size) said += finder.Add(text.substr(at, size));
    said += finder.Rest();
    EXPECT_EQ(said, "some text ENxy ") << size;
    EXPECT_EQ(finder.said(), said);
    ASSERT_NE(finder.found(), nullptr);
    EXPECT_EQ(*finder.found(), "END");
  }
}

TEST(StopFinder, GivesBackWhatItHeldWhenNoStopCame) {
  const std::vector<std::string> stops = {"abcd"};
  StopFinder finder(stops);
  EXPECT_EQ(finder.Add("xabc"), "x");
  EXPECT_EQ(finder.Rest(), "abc");
  EXPECT_EQ(finder.found(), nullptr);
}

TEST(StopFinder, DoesNotCutACharacterInTwo) {
  const std::vector<std::string> stops = {"!!"};
  StopFinder finder(stops);
  EXPECT_EQ(finder.Add("a水"), "a");
  EXPECT_EQ(finder.Add("b"), "水");
}

}  // namespace
}  // namespace fathom
