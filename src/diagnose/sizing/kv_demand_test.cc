#include "diagnose/sizing/kv_demand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fathom {
namespace {

using std::chrono::seconds;

KvCapacity Tokens(uint64_t tokens) {
  return {.tokens = tokens, .blocks = tokens / 16, .block_size = 16, .observed = true};
}

// 20 sequences of 4000 + 500 / 2 tokens hold 85,000 of 400,000.
Workload Chat() {
  return {.sequences = 20,
          .max_sequences = 64,
          .prompt_tokens = 4000,
          .output_tokens = 500,
          .new_tokens_per_second = 3000,
          .requests_per_second = std::nullopt,
          .between_turns = seconds(30)};
}

TEST(KvDemand, IsWhatRunningSequencesHoldAndTheRestIsRetained) {
  const KvDemand demand = ReckonDemand(Tokens(400'000), Chat());
  EXPECT_EQ(demand.active_tokens, 20 * 4250);
  EXPECT_EQ(demand.worst_tokens, 64 * 4500);
  EXPECT_EQ(demand.retained_tokens, 400'000 - 85'000);
  EXPECT_EQ(demand.idle_contexts, 315'000 / 4500.0);
  EXPECT_FALSE(demand.overcommitted(Tokens(400'000)));
}

TEST(KvDemand, LetsABlockLiveUntilItsRoomHasBeenWrittenOnce) {
  const KvDemand demand = ReckonDemand(Tokens(400'000), Chat());
  ASSERT_TRUE(demand.lifetime.has_value());
  EXPECT_NEAR(Seconds(*demand.lifetime), 315'000 / 3000.0, 1e-6);  // 105 s
  EXPECT_NEAR(demand.in_time.value(), 1 - std::exp(-105 / 30.0), 1e-9);
  EXPECT_EQ(demand.verdict, Retention::kComfortable);
}

TEST(KvDemand, IsJudgedByTheTimeBetweenTurns) {
  Workload chat = Chat();
  chat.between_turns = seconds(100);
  EXPECT_EQ(ReckonDemand(Tokens(400'000), chat).verdict, Retention::kTight);
  chat.between_turns = seconds(300);
  EXPECT_EQ(ReckonDemand(Tokens(400'000), chat).verdict, Retention::kGone);
  chat.between_turns = std::nullopt;
  EXPECT_EQ(ReckonDemand(Tokens(400'000), chat).verdict, Retention::kUnknown);
  EXPECT_TRUE(ReckonDemand(Tokens(400'000), chat).lifetime.has_value());
}

TEST(KvDemand, TakesTheRateFromRequestsWhereItWasNotMeasured) {
  Workload chat = Chat();
  chat.new_tokens_per_second = std::nullopt;
  EXPECT_EQ(ReckonDemand(Tokens(400'000), chat).lifetime, std::nullopt);
  chat.requests_per_second = 2;
  EXPECT_EQ(ReckonDemand(Tokens(400'000), chat).new_tokens_per_second, 9000);
}

TEST(KvDemand, IsGoneWhereRunningSequencesNeedEverything) {
  Workload chat = Chat();
  chat.new_tokens_per_second = std::nullopt;
  const KvDemand demand = ReckonDemand(Tokens(80'000), chat);
  EXPECT_TRUE(demand.overcommitted(Tokens(80'000)));
  EXPECT_EQ(demand.retained_tokens, 0);
  EXPECT_EQ(demand.verdict, Retention::kGone);
}

TEST(KvDemand, NeverRunsMoreSequencesThanTheEngineDoes) {
  Workload chat = Chat();
  chat.max_sequences = 8;
  EXPECT_EQ(ReckonDemand(Tokens(400'000), chat).active_tokens, 8 * 4250);
}

TEST(KvDemand, CountsHostMemoryAsRoomForIdleBlocks) {
  const KvDemand demand = ReckonDemand(Tokens(400'000), Chat(), 300'000);
  EXPECT_EQ(demand.retained_tokens, 615'000);
  EXPECT_NEAR(Seconds(demand.lifetime.value()), 205, 1e-6);
}

TEST(KvDemand, OfAnIdleEngineKeepsEverything) {
  Workload idle = Chat();
  idle.sequences = 0;
  idle.new_tokens_per_second = 0;
  const KvDemand demand = ReckonDemand(Tokens(400'000), idle);
  EXPECT_EQ(demand.lifetime, KvDemand::kForever);
  EXPECT_EQ(demand.verdict, Retention::kComfortable);
}

TEST(KvDemand, SurvivesNumbersThatAreNone) {
  Workload broken = Chat();
  broken.sequences = std::numeric_limits<double>::quiet_NaN();
  broken.prompt_tokens = -5;
  broken.between_turns = seconds(0);
  const KvDemand demand = ReckonDemand(Tokens(1000), broken);
  EXPECT_EQ(demand.active_tokens, 0);
  EXPECT_EQ(demand.in_time, 1);
}

}  // namespace
}  // namespace fathom
