#include "router/fleet/rank_slowness.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace fathom {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class RankSlownessTest : public testing::Test {
 protected:
  // First tokens after prompts of 200 to 4,000 tokens, each off by at most a fifth, one a second.
  void Observe(double ratio, int times) {
    for (int i = 0; i < times; ++i) {
      now_ += seconds(1);
      const double luck = 0.8 + 0.4 * random_.Unit();
      slowness_.Observe({200 + random_.Unit() * 3800, ratio * luck, life_}, life_, now_);
    }
  }
  double At() const { return slowness_.At(now_, life_); }

  Random random_{1};
  TimePoint now_ = TimePoint(std::chrono::hours(1));
  uint64_t life_ = 7;
  RankSlowness slowness_;
};

TEST_F(RankSlownessTest, IsOneAtFirstAndWithinNoise) {
  EXPECT_EQ(At(), 1);
  Observe(1.3, 200);
  EXPECT_EQ(At(), 1);
  Observe(0.2, 200);
  EXPECT_EQ(At(), 1) << "and no rank is faster than the fleet";
}

TEST_F(RankSlownessTest, ShowsARankThatIsSlower) {
  Observe(4, 100);
  EXPECT_GT(At(), 2.4);
  EXPECT_LT(At(), 4.4);
}

// A short prompt waits for the engine's current step, on every rank.
TEST_F(RankSlownessTest, IsOneIfOnlyShortPromptsTakeLongForTheirWork) {
  for (int i = 0; i < 200; ++i) {
    now_ += seconds(1);
    const bool is_long = i % 3 == 0;
    slowness_.Observe({is_long ? 12'000.0 : 1500.0, is_long ? 0.9 : 6.0, life_}, life_, now_);
    EXPECT_EQ(At(), 1);
  }
}

TEST_F(RankSlownessTest, IsOneAfterAFewObservations) {
  Observe(16, 10);
  EXPECT_EQ(At(), 1);
}

TEST_F(RankSlownessTest, IsBounded) {
  Observe(1e9, 100);
  EXPECT_LE(At(), RankSlowness::kMost);
  EXPECT_GT(At(), RankSlowness::kMost / 2);
}

TEST_F(RankSlownessTest, FallsWithTimeAndNeverRisesWithoutAnObservation) {
  Observe(8, 100);
  for (double before = At(); before > 1; before = At()) {
    now_ += seconds(5);
    ASSERT_LE(At(), before);
    ASSERT_LT(now_, TimePoint(std::chrono::hours(2))) << "it never falls to 1";
  }
}

// However slow it was, and however long its prompts were.
TEST_F(RankSlownessTest, IsForgottenAfterSomeMinutesWithoutRequests) {
  for (int i = 0; i < 1000; ++i) {
    slowness_.Observe({1e6, 1e6, life_}, life_, now_ += std::chrono::milliseconds(1));
  }
  EXPECT_GT(At(), 8);
  now_ += minutes(3);
  EXPECT_EQ(At(), 1);
}

TEST_F(RankSlownessTest, IsFoundOutAgainWithinFewRequests) {
  Observe(8, 100);
  now_ += minutes(3);
  EXPECT_EQ(At(), 1);
  int requests = 0;
  while (At() == 1 && requests < 100) {
    Observe(8, 1);
    ++requests;
  }
  EXPECT_LE(requests, 8);
}

TEST_F(RankSlownessTest, EndsWithTheProcess) {
  Observe(8, 100);
  EXPECT_GT(At(), 2);
  ++life_;
  EXPECT_EQ(At(), 1);
  Observe(8, 10);
  EXPECT_EQ(At(), 1) << "a new process starts without a past";
}

// A process that was stopped answers them late, when it goes on.
TEST_F(RankSlownessTest, IgnoresRequestsThatWereSentToTheProcessBefore) {
  for (int i = 0; i < 100; ++i) slowness_.Observe({1000, 16, life_ - 1}, life_, now_);
  EXPECT_EQ(At(), 1);
}

TEST_F(RankSlownessTest, IgnoresWhatMakesNoSense) {
  for (int i = 0; i < 100; ++i) {
    slowness_.Observe({0, 16, life_}, life_, now_);
    slowness_.Observe({-1, 16, life_}, life_, now_);
    slowness_.Observe({1000, 0, life_}, life_, now_);
    slowness_.Observe({1000, std::numeric_limits<double>::quiet_NaN(), life_}, life_, now_);
  }
  EXPECT_EQ(At(), 1);
}

}  // namespace
}  // namespace fathom
