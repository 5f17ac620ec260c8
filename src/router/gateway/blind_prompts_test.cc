#include "router/gateway/blind_prompts.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

constexpr RankLabel kFirstRank{.worker = 1};
constexpr RankLabel kSecondRank{.worker = 2};
constexpr uint64_t kBlindSecret = 7;

std::string BlindTurns(size_t pieces) { return std::string(pieces * TextPieces::kPiece, 'x'); }

TextPieces BlindMessages(std::string_view text, uint64_t space = 1) {
  PromptFields parts;
  parts.messages = text;
  return TextPieces(parts, space, kBlindSecret);
}

class BlindPromptsTest : public testing::Test {
 protected:
  // Prompt tokens, found by the engine; what was wasted.
  uint32_t Send(const TextPieces& pieces, RankLabel rank, uint64_t tokens = 1000,
                std::optional<uint64_t> cached = std::nullopt) {
    BlindPrompt prompt(all_, pieces, rank, now_);
    prompt.FirstByte(now_);
    return prompt.End(EngineUsage{.prompt_tokens = tokens, .cached_tokens = cached}, 0)->wasted;
  }

  TimePoint now_{std::chrono::hours(1)};
  BlindPrompts all_;
};

TEST_F(BlindPromptsTest, ATextThatIsNewWastesNothing) {
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10)), kFirstRank), 0u);
}

TEST_F(BlindPromptsTest, WhatAnotherRankHasComputedIsWasted) {
  Send(BlindMessages(BlindTurns(10)), kFirstRank);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10)), kSecondRank), 1000u);
}

TEST_F(BlindPromptsTest, OfALongerTurnItIsTheShareOfItsText) {
  Send(BlindMessages(BlindTurns(10)), kFirstRank);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(20)), kSecondRank), 500u);
}

TEST_F(BlindPromptsTest, WhatTheEngineFoundIsNotWasted) {
  Send(BlindMessages(BlindTurns(10)), kFirstRank);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10)), kSecondRank, 1000, 600), 400u);
  Send(BlindMessages(BlindTurns(10), 2), kFirstRank);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10), 2), kSecondRank, 1000, 1001), 0u)
      << "more than there is";
}

TEST_F(BlindPromptsTest, TheRightRankByChanceWastesNothing) {
  Send(BlindMessages(BlindTurns(10)), kFirstRank);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10)), kFirstRank, 1000, 0), 0u)
      << "evicted, but it was the right rank";
  Send(BlindMessages(BlindTurns(20)), kSecondRank);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(20)), kFirstRank, 1000, 0), 500u)
      << "the rank has the first half";
}

TEST_F(BlindPromptsTest, SeveralRanksHaveIt) {
  for (uint64_t worker = 1; worker <= BlindPrompts::kRanks; ++worker) {
    Send(BlindMessages(BlindTurns(10)), {.worker = worker});
  }
  for (uint64_t worker = 1; worker <= BlindPrompts::kRanks; ++worker) {
    EXPECT_EQ(Send(BlindMessages(BlindTurns(10)), {.worker = worker}), 0u) << worker;
  }
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10)), {.worker = 1, .dp_rank = 1}), 1000u);
}

TEST_F(BlindPromptsTest, WhatIsOldIsNotCounted) {
  Send(BlindMessages(BlindTurns(10)), kFirstRank);
  now_ += BlindPrompts::kKept + std::chrono::seconds(1);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10)), kSecondRank), 0u);
  now_ += BlindPrompts::kKept - std::chrono::seconds(1);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10)), kFirstRank), 1000u)
      << "the second rank still counts";
}

TEST_F(BlindPromptsTest, CachesThatAreApartAreNotMixedUp) {
  Send(BlindMessages(BlindTurns(10), 1), kFirstRank);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10), 2), kSecondRank), 0u);
}

TEST_F(BlindPromptsTest, ARequestThatFailedCountsForNothing) {
  BlindPrompt failed(all_, BlindMessages(BlindTurns(10)), kFirstRank, now_);
  EXPECT_EQ(failed.End(EngineUsage{.prompt_tokens = 5}, 0), std::nullopt);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10)), kSecondRank), 0u);
}

TEST_F(BlindPromptsTest, WithoutUsageTheTokensAreGuessed) {
  Send(BlindMessages(BlindTurns(10)), kFirstRank);
  BlindPrompt prompt(all_, BlindMessages(BlindTurns(10)), kSecondRank, now_);
  prompt.FirstByte(now_);
  const auto outcome = prompt.End(std::nullopt, 300);
  EXPECT_EQ(outcome->prompt_tokens, 300u);
  EXPECT_EQ(outcome->wasted, 300u);
}

TEST_F(BlindPromptsTest, AnImpossibleCountIsNotBelieved) {
  Send(BlindMessages(BlindTurns(10)), kFirstRank);
  EXPECT_EQ(Send(BlindMessages(BlindTurns(10)), kSecondRank, UINT64_MAX, UINT64_MAX), 0u);
}

TEST(TextPiecesTest, NameAllTextUpToTheirEnd) {
  const std::string text = BlindTurns(3);
  std::string other = text;
  other[TextPieces::kPiece] = 'y';
  const auto names = BlindMessages(text).names();
  const auto others = BlindMessages(other).names();
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0], others[0]);
  EXPECT_NE(names[1], others[1]);
  EXPECT_NE(names[2], others[2]) << "what precedes it is different";
}

TEST(TextPiecesTest, TheSystemTextAndToolsComeFirst) {
  PromptFields parts;
  parts.system = "short";
  parts.messages = "[]";
  const TextPieces pieces(parts, 1, kBlindSecret);
  ASSERT_EQ(pieces.names().size(), 1u) << "the open end of the messages has no name";
  EXPECT_DOUBLE_EQ(pieces.Share(1), 5.0 / 7);
  parts.tools = "[t]";
  EXPECT_NE(TextPieces(parts, 1, kBlindSecret).names().back(), pieces.names().back());
}

TEST(TextPiecesTest, OfAVeryLongTextTheBeginningCounts) {
  const std::string text = BlindTurns(3 * TextPieces::kMostPieces);
  const TextPieces pieces = BlindMessages(text);
  EXPECT_EQ(pieces.names().size(), TextPieces::kMostPieces);
  EXPECT_DOUBLE_EQ(pieces.Share(pieces.names().size()), 1.0 / 3);
}

}  // namespace
}  // namespace fathom
