#include "router/fleet/churn_watch.h"

#include <gtest/gtest.h>

#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr TimePoint kLater = kTestBegin + ChurnWatch::kNotBefore;

void Return(ChurnWatch& watch, uint32_t requests, uint64_t evicted, uint64_t reused,
            TimePoint now = kTestBegin) {
  for (uint32_t i = 0; i < requests; ++i) watch.Returned(evicted, reused, now);
}

TEST(ChurnWatch, NeedsManyRequestsOverSomeTime) {
  ChurnWatch watch;
  Return(watch, ChurnWatch::kRequests - 1, 100, 0);
  EXPECT_FALSE(watch.Look(kLater));
  Return(watch, 1, 100, 0);
  EXPECT_FALSE(watch.Look(kLater - seconds(1)));
  const auto churn = watch.Look(kLater);
  ASSERT_TRUE(churn);
  EXPECT_EQ(churn->requests, ChurnWatch::kRequests);
  EXPECT_EQ(churn->evicted, 100 * ChurnWatch::kRequests);
  EXPECT_EQ(churn->reused, 0u);
}

TEST(ChurnWatch, LeavesOutPromptsThatHadNotBeenThere) {
  ChurnWatch watch;
  Return(watch, 1000, 0, 0);
  Return(watch, ChurnWatch::kRequests - 1, 100, 0);
  EXPECT_FALSE(watch.Look(kLater));
}

TEST(ChurnWatch, TakesSomeEvictionForGranted) {
  ChurnWatch watch;
  Return(watch, 100, 89, 11);
  EXPECT_FALSE(watch.Look(kLater));
  Return(watch, 1000, 92, 8);
  EXPECT_TRUE(watch.Look(kLater));
}

TEST(ChurnWatch, EndsWhenEnoughIsReusedAgain) {
  ChurnWatch watch;
  Return(watch, 100, 100, 0);
  ASSERT_TRUE(watch.Look(kLater));
  Return(watch, 25, 0, 100, kLater);
  EXPECT_TRUE(watch.Look(kLater)) << "four fifths are gone";
  Return(watch, 25, 0, 100, kLater);
  EXPECT_FALSE(watch.Look(kLater)) << "two thirds";
  Return(watch, 50, 100, 0, kLater);
  EXPECT_FALSE(watch.Look(kLater)) << "three quarters do not make it again";
}

TEST(ChurnWatch, ForgetsWhatIsLongAgo) {
  ChurnWatch watch;
  Return(watch, 100, 100, 0);
  ASSERT_TRUE(watch.Look(kLater));
  EXPECT_TRUE(watch.Look(kTestBegin + minutes(1)));
  EXPECT_FALSE(watch.Look(kTestBegin + minutes(2)));
}

TEST(ChurnWatch, TellsHowFastBlocksComeAndGo) {
  ChurnWatch watch;
  watch.Heard(5000, 4000, 1000, kTestBegin);  // from before the watch began
  Return(watch, 100, 100, 0);
  watch.Heard(5060, 4030, 1030, kTestBegin + seconds(30));
  const auto churn = watch.Look(kTestBegin + seconds(30));
  ASSERT_TRUE(churn);
  EXPECT_DOUBLE_EQ(churn->stores, 120);
  EXPECT_DOUBLE_EQ(churn->removals, 60);
  EXPECT_EQ(churn->lifetime, seconds(1030));
}

TEST(ChurnWatch, BeginsAnewWithANewStream) {
  ChurnWatch watch;
  watch.Heard(5000, 4000, 1000, kTestBegin);
  Return(watch, 100, 100, 0);
  ASSERT_TRUE(watch.Look(kLater));
  watch.Heard(10, 5, 5, kLater);
  EXPECT_FALSE(watch.Look(kLater));
  Return(watch, 100, 100, 0, kLater);
  watch.Heard(20, 15, 5, kLater + seconds(60));
  const auto churn = watch.Look(kLater + seconds(60));
  ASSERT_TRUE(churn);
  EXPECT_DOUBLE_EQ(churn->stores, 10);
  EXPECT_DOUBLE_EQ(churn->removals, 10);
}

}  // namespace
}  // namespace fathom
