#include "base/repeat_limit.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using std::chrono::seconds;

const TimePoint kNow = TimePoint(std::chrono::hours(1));

TEST(RepeatLimit, LogsTheFirstFewAndThenOnePerPause) {
  const RepeatRule rule{.freely = 2, .pause = seconds(60)};
  RepeatLimit limit;
  EXPECT_EQ(limit.Next(kNow, rule), 0u);
  EXPECT_EQ(limit.Next(kNow, rule), 0u);
  EXPECT_EQ(limit.Next(kNow, rule), std::nullopt);
  EXPECT_EQ(limit.Next(kNow + seconds(59), rule), std::nullopt);
  EXPECT_EQ(limit.Next(kNow + seconds(60), rule), 2u) << "with those in between";
  EXPECT_EQ(limit.Next(kNow + seconds(61), rule), std::nullopt);
}

TEST(RepeatLimit, HasARestOnceTheLinesHaveEnded) {
  RepeatLimit limit;
  limit.Next(kNow);
  EXPECT_EQ(limit.Rest(kNow + seconds(99)), std::nullopt) << "nothing was suppressed";
  limit.Next(kNow + seconds(1));
  EXPECT_EQ(limit.Rest(kNow + seconds(2)), std::nullopt) << "more may come";
  EXPECT_EQ(limit.Rest(kNow + seconds(60)), 1u);
  EXPECT_EQ(limit.Rest(kNow + seconds(999)), std::nullopt);
}

TEST(RepeatLimits, KeepSubjectsApartUpToTheirNumber) {
  RepeatLimits limits;
  for (uint64_t key = 0; key < RepeatLimits::kMostKeys; ++key) {
    EXPECT_EQ(limits.Next(key, kNow), 0u);
    EXPECT_EQ(limits.Next(key, kNow), std::nullopt);
  }
  EXPECT_EQ(limits.Next(1'000'000, kNow), 0u);
  EXPECT_EQ(limits.Next(1'000'001, kNow), std::nullopt) << "it shares the limit of the rest";
  EXPECT_EQ(limits.Next(1'000'002, kNow + seconds(60)), 0u) << "the others are quiet by now";
}

}  // namespace
}  // namespace fathom
