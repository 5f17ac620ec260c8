#include "router/fleet/rank_witness.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "testing/sanitizers.h"
#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::vector<TokenId> kTokens = {1, 2, 3, 4};

ExpectedBlocks Expected() {
  return {.tokens = kTokens, .keys = {11}, .block_size = 4, .model = "m"};
}
RankFacts Trusted() { return {.agreed = {TrustState::kTrusted, TrustCause::kNone, kTestBegin}}; }

TEST(RankWitness, GivesEachNoteANumberOfItsOwn) {
  RankWitness witness;
  EXPECT_EQ(witness.Sent(false, std::nullopt, kTestBegin), 0u);
  EXPECT_FALSE(witness.expects());
  const uint64_t first = witness.Sent(false, Expected(), kTestBegin);
  const uint64_t second = witness.Sent(true, Expected(), kTestBegin);
  EXPECT_NE(first, 0u);
  EXPECT_NE(second, first);
  EXPECT_TRUE(witness.expects());
  witness.Withdraw(first);
  EXPECT_TRUE(witness.expects());
  witness.Withdraw(second);
  EXPECT_FALSE(witness.expects());
}

TEST(RankWitness, TakesNoMoreThanItHasRoomFor) {
  RankWitness witness;
  for (size_t i = 0; i < TokenAgreement::kMost; ++i) {
    ASSERT_TRUE(witness.MayExpect(kTestBegin));
    ASSERT_NE(witness.Sent(true, Expected(), kTestBegin), 0u);
  }
  EXPECT_FALSE(witness.MayExpect(kTestBegin));
  EXPECT_EQ(witness.Sent(true, Expected(), kTestBegin), 0u);
}

TEST(RankWitness, MeasuresTheLagOfAnEventAndRemembersIt) {
  RankWitness witness;
  TimePoint now = kTestBegin;
  Judgement judgement;
  for (uint32_t i = 0; i < LagWatch::kLooks; ++i) {
    witness.FirstByte(witness.Sent(false, Expected(), now), now);
    now += seconds(5);
    EXPECT_EQ(witness.Stored({.tokens = kTokens}, now), seconds(5));
    EXPECT_FALSE(witness.expects());
    judgement = witness.Judge({}, Trusted(), now);
  }
  EXPECT_EQ(judgement.trust.cause, TrustCause::kEventLag);
}

TEST(RankWitness, PublishesWhatTheRanksWordIsWorth) {
  RankWitness witness;
  EXPECT_FALSE(witness.trusted());
  EXPECT_EQ(witness.Credit(PromptSpace::kPlain), 1);
  witness.Judge({}, Trusted(), kTestBegin);
  EXPECT_TRUE(witness.trusted());
  for (size_t i = 0; i < PredictionRecord::kEnough; ++i) {
    witness.Served({.space = PromptSpace::kAdapter, .predicted = 100, .cached = 50}, kTestBegin);
  }
  witness.Judge({}, Trusted(), kTestBegin + RankTrust::kSettling);
  EXPECT_FALSE(witness.trusted());
  EXPECT_EQ(witness.Credit(PromptSpace::kPlain), 1);
  EXPECT_EQ(witness.Credit(PromptSpace::kAdapter), 0.5);
}

TEST(RankWitness, GivesNoCreditToTheKindOfPromptWhoseTokensDiffer) {
  RankWitness witness;
  TimePoint now = kTestBegin;
  const auto request = [&](PromptKind kind, const std::vector<TokenId>& stored) {
    ExpectedBlocks expected = Expected();
    expected.kind = kind;
    witness.FirstByte(witness.Sent(false, expected, now), now);
    witness.Stored({.tokens = stored}, now);
    now += TokenAgreement::kPatience;
    return witness.Judge({}, Trusted(), now);
  };
  std::vector<TokenId> others(kTokens.begin(), kTokens.end());
  others[0] += 1000;
  request(PromptKind::kChat, {kTokens.begin(), kTokens.end()});
  Judgement judgement;
  for (uint32_t i = 0; i < TokenAgreement::kDoubt / TokenAgreement::kAlone; ++i) {
    judgement = request(PromptKind::kDeveloper, others);
  }
  EXPECT_EQ(judgement.trust.cause, TrustCause::kTokensDiffer);
  EXPECT_EQ(witness.Credit(PromptSpace::kPlain, PromptKind::kDeveloper), 0);
  EXPECT_EQ(witness.Credit(PromptSpace::kPlain, PromptKind::kChat), 1);
  EXPECT_EQ(judgement.credit[0], 1) << "most prompts have it";
}

TEST(RankWitness, ShowsTheLatestPulse) {
  RankWitness witness;
  EXPECT_EQ(witness.pulse(), PulseReading{});
  witness.Pulse({.removed = 3, .lives = 2});
  EXPECT_EQ(witness.pulse(), (PulseReading{.removed = 3, .lives = 2}));
}

// Loops, the intake and the keeper run at once. Every request is served as predicted and every
// event agrees, so no doubt may arise, and no wasted token may be missing from the count.
TEST(RankWitness, CanBeToldFromManyThreads) {
  constexpr int kEach = kSanitized ? 500 : 5000;
  constexpr int kLoops = 3;
  RankWitness witness;
  std::vector<std::jthread> threads;
  for (int loop = 0; loop < kLoops; ++loop) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        const TimePoint now = kTestBegin + microseconds(i);
        const uint64_t note = witness.Sent(true, Expected(), now);
        if (i % 3 == 0) {
          witness.Withdraw(note);
        } else {
          witness.FirstByte(note, now);
        }
        witness.Served({.predicted = 16, .cached = 16, .sent = now, .pulse = witness.pulse()}, now);
        witness.Wasted(1, now);
        witness.Returned(1, 1, now);
      }
    });
  }
  threads.emplace_back([&] {
    for (uint64_t i = 0; i < kEach; ++i) {
      const TimePoint now = kTestBegin + microseconds(i);
      if (witness.expects()) witness.Stored({.tokens = kTokens}, now);
      witness.Stamped(milliseconds(1), TimePoint());
      witness.Pulse({.removed = i, .lives = 0});
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < kEach; ++i) {
      RankFacts facts = Trusted();
      facts.batches = static_cast<uint64_t>(i) + 1;
      facts.pulse = witness.pulse();
      const Judgement judgement = witness.Judge({}, facts, kTestBegin + microseconds(i));
      EXPECT_EQ(judgement.trust.state, TrustState::kTrusted);
      EXPECT_EQ(witness.Credit(PromptSpace::kPlain), 1);
    }
  });
  threads.clear();
  const Judgement judgement = witness.Judge({}, Trusted(), kTestBegin + seconds(5));
  EXPECT_EQ(judgement.cost, static_cast<uint64_t>(kLoops * kEach));
}

}  // namespace
}  // namespace fathom
