#include "router/routing/saturation.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

constexpr PromptView kPrompt{.tokens = 1000};
constexpr RankLimits kLimits{.batch_tokens = 2048, .kv_tokens = 50'000, .max_running = 8};

RankView Busy(uint32_t requests, double backlog = 0, uint64_t context = 0) {
  RankView rank;
  rank.load = {.backlog = backlog, .queued = backlog, .context = context, .requests = requests};
  return rank;
}

TEST(Saturation, LeavesRoomBelowEveryLimit) {
  EXPECT_EQ(RoomFor(kPrompt, Busy(7, 4095, 49'000), kLimits, 2), Room::kFree);
}

TEST(Saturation, IsShortOfRoomWhenSomeStepsOfPrefillAreQueued) {
  EXPECT_EQ(RoomFor(kPrompt, Busy(1, 4096), kLimits, 2), Room::kShort);
  EXPECT_EQ(RoomFor(kPrompt, Busy(1, 4096), kLimits, 3), Room::kFree);
}

TEST(Saturation, IsShortOfRoomWhenTheCacheIsFull) {
  EXPECT_EQ(RoomFor(kPrompt, Busy(1, 0, 49'001), kLimits, 2), Room::kShort);
  RankView sharing = Busy(1, 0, 49'001);
  sharing.shared = 500;
  EXPECT_EQ(RoomFor(kPrompt, sharing, kLimits, 2), Room::kFree);
}

TEST(Saturation, IsFullWhenAsManyRunAsCan) {
  EXPECT_EQ(RoomFor(kPrompt, Busy(8), kLimits, 2), Room::kFull);
  EXPECT_EQ(RoomFor(kPrompt, Busy(9, 1e9, 1e9), kLimits, 2), Room::kFull);
}

TEST(Saturation, AlwaysHasRoomOnAnIdleRank) {
  const PromptView huge{.tokens = 1'000'000};
  EXPECT_EQ(RoomFor(huge, Busy(0), kLimits, 2), Room::kFree);
  EXPECT_EQ(RoomFor(huge, Busy(0), {.max_running = 1}, 0.001), Room::kFree);
}

TEST(Saturation, LetsThroughWhatWouldNeverFit) {
  EXPECT_EQ(RoomFor({.tokens = 50'001}, Busy(1, 0, 49'001), kLimits, 2), Room::kFree);
  EXPECT_EQ(RoomFor({.tokens = 50'000}, Busy(1, 0, 49'001), kLimits, 2), Room::kShort);
}

TEST(Saturation, IsNobodysBusinessWithoutAThreshold) {
  EXPECT_EQ(RoomFor(kPrompt, Busy(100, 1e9, 1e9), kLimits, 0), Room::kFree);
}

TEST(Saturation, AssumesAUsualStepOfAnEngineThatSaysNothing) {
  EXPECT_EQ(RoomFor(kPrompt, Busy(1000, 2 * kUsualBatchTokens - 1, 1e9), {}, 2), Room::kFree);
  EXPECT_EQ(RoomFor(kPrompt, Busy(1000, 2 * kUsualBatchTokens, 1e9), {}, 2), Room::kShort);
}

}  // namespace
}  // namespace fathom
