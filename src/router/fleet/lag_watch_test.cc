#include "router/fleet/lag_watch.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kLimit = seconds(2);

// Looks once for each lag, and returns the last answer.
std::optional<LateEvents> Measure(LagWatch& watch, Duration lag, uint32_t looks) {
  std::optional<LateEvents> late;
  for (uint32_t i = 0; i < looks; ++i) {
    watch.AfterFirstByte(lag);
    late = watch.Look(kLimit);
  }
  return late;
}

constexpr TimePoint kMoment{std::chrono::hours(1)};

TEST(LagWatch, IsLateOnceItHasBeenForAWhile) {
  LagWatch watch;
  EXPECT_FALSE(Measure(watch, seconds(3), LagWatch::kLooks - 1));
  const auto late = Measure(watch, seconds(3), 1);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->lag, seconds(3));
  EXPECT_EQ(late->limit, kLimit);
  EXPECT_TRUE(late->after_first_byte);
}

TEST(LagWatch, IsInTimeOnceItHasBeenForAWhile) {
  LagWatch watch;
  Measure(watch, seconds(3), LagWatch::kLooks);
  EXPECT_TRUE(Measure(watch, seconds(1), LagWatch::kLooks - 1));
  EXPECT_TRUE(Measure(watch, seconds(3), 1)) << "late again: it begins anew";
  EXPECT_TRUE(Measure(watch, seconds(1), LagWatch::kLooks - 1));
  EXPECT_FALSE(Measure(watch, seconds(1), 1));
}

TEST(LagWatch, ForgivesAnAccident) {
  LagWatch watch;
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(Measure(watch, hours(1), LagWatch::kLooks - 1));
    ASSERT_FALSE(Measure(watch, seconds(1), 1));
  }
}

TEST(LagWatch, TakesNoNewsForNothing) {
  LagWatch watch;
  Measure(watch, seconds(3), LagWatch::kLooks - 1);
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(watch.Look(kLimit));
  ASSERT_TRUE(Measure(watch, seconds(3), 1));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(watch.Look(kLimit));
}

TEST(LagWatch, CountsTheWorstSinceTheLastLook) {
  LagWatch watch;
  for (uint32_t i = 0; i < LagWatch::kLooks; ++i) {
    watch.AfterFirstByte(seconds(1));
    watch.AfterFirstByte(seconds(4));
    watch.AfterFirstByte(seconds(1));
    watch.Look(kLimit);
  }
  ASSERT_TRUE(watch.Look(kLimit));
  EXPECT_EQ(watch.Look(kLimit)->lag, seconds(4));
}

TEST(LagWatch, TakesTimestampsAtTheirWordWhereClocksAgree) {
  LagWatch watch;
  EXPECT_EQ(watch.ByTimestamp(milliseconds(20), kMoment), milliseconds(20));
  EXPECT_EQ(watch.ByTimestamp(seconds(3), kMoment), seconds(3));
  EXPECT_EQ(watch.ByTimestamp(milliseconds(-20), kMoment), Duration::zero());
}

TEST(LagWatch, FindsABacklogWhereClocksDiffer) {
  for (const Duration ahead : {hours(5), hours(-5)}) {
    LagWatch watch;
    EXPECT_EQ(watch.ByTimestamp(ahead, kMoment), Duration::zero());
    EXPECT_EQ(watch.ByTimestamp(ahead + seconds(3), kMoment), seconds(3));
    EXPECT_EQ(watch.ByTimestamp(ahead - seconds(1), kMoment), Duration::zero());
    EXPECT_EQ(watch.ByTimestamp(ahead, kMoment), seconds(1));
  }
}

TEST(LagWatch, ComparesTheClockOfANewProcessAnew) {
  LagWatch watch;
  watch.ByTimestamp(hours(5), kMoment);
  watch.Reset();
  EXPECT_EQ(watch.ByTimestamp(hours(6), kMoment), Duration::zero());
}

TEST(LagWatch, GetsUsedToAClockThatWasSet) {
  LagWatch watch;
  watch.ByTimestamp(milliseconds(1), kMoment);
  const Duration step = seconds(30);
  EXPECT_EQ(watch.ByTimestamp(step, kMoment), step);
  watch.ByTimestamp(step, kMoment + minutes(5));
  EXPECT_EQ(watch.ByTimestamp(step, kMoment + minutes(10)), Duration::zero());
}

TEST(LagWatch, SaysByWhichClock) {
  LagWatch watch;
  watch.ByTimestamp(Duration::zero(), kMoment);
  for (uint32_t i = 0; i < LagWatch::kLooks; ++i) {
    watch.ByTimestamp(seconds(3), kMoment);
    watch.Look(kLimit);
  }
  ASSERT_TRUE(watch.Look(kLimit));
  EXPECT_FALSE(watch.Look(kLimit)->after_first_byte);
}

}  // namespace
}  // namespace fathom
