#include "metrics/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "base/random.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr double kBounds[] = {0.001, 0.01, 0.1, 1};

TEST(Histogram, PutsADurationThatEqualsABoundIntoThatBucket) {
  Histogram histogram(kBounds);
  histogram.Observe(milliseconds(10));
  histogram.Observe(milliseconds(10) + nanoseconds(1));
  EXPECT_THAT(histogram.Snapshot().cumulative, ElementsAre(0, 1, 2, 2, 2));
}

TEST(Histogram, CountsWhatIsBeyondTheLastBoundOnlyInInf) {
  Histogram histogram(kBounds);
  histogram.Observe(seconds(2));
  histogram.Observe(Duration::max());
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_THAT(snapshot.cumulative, ElementsAre(0, 0, 0, 0, 2));
  EXPECT_EQ(snapshot.count(), 2u);
}

TEST(Histogram, SumsInSeconds) {
  Histogram histogram(kBounds);
  histogram.Observe(milliseconds(250));
  histogram.Observe(milliseconds(500));
  histogram.Observe(nanoseconds(1));
  EXPECT_DOUBLE_EQ(histogram.Snapshot().sum, 0.750000001);
}

TEST(Histogram, TakesANegativeDurationAsZero) {
  Histogram histogram(kBounds);
  histogram.Observe(seconds(-5));
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_THAT(snapshot.cumulative, ElementsAre(1, 1, 1, 1, 1));
  EXPECT_EQ(snapshot.sum, 0);
}

// Compares the search with the definition, for every number of bounds, at and around every bound.
TEST(Histogram, FindsTheFirstBoundThatIsNotBelowForEveryNumberOfBounds) {
  for (size_t n = 1; n <= Histogram::kMaxBuckets; ++n) {
    std::vector<double> bounds;
    for (size_t i = 0; i < n; ++i) bounds.push_back(1e-6 * std::pow(2.0, double(i)));
    Histogram histogram(bounds);
    std::vector<uint64_t> expected(n + 1);
    for (const double bound : bounds) {
      const int64_t at = std::llround(bound * 1e9);
      for (const int64_t ns : {at - 1, at, at + 1}) {
        histogram.Observe(nanoseconds(ns));
        for (size_t i = 0; i < n; ++i) expected[i] += ns <= std::llround(bounds[i] * 1e9) ? 1 : 0;
        ++expected[n];
      }
    }
    EXPECT_EQ(histogram.Snapshot().cumulative, expected) << n << " bounds";
  }
}

TEST(Histogram, AgreesWithItselfWhileThreadsObserve) {
  constexpr int kThreads = 4;
  constexpr int kObservations = 20000;
  Histogram histogram(kBounds);
  std::atomic<int> running{kThreads};
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(t));
      for (int i = 0; i < kObservations; ++i) {
        histogram.Observe(nanoseconds(random.Below(2'000'000'000)));
      }
      running.fetch_sub(1);
    });
  }
  HistogramSnapshot last = histogram.Snapshot();
  while (running.load() > 0) {
    const HistogramSnapshot now = histogram.Snapshot();
    ASSERT_TRUE(std::ranges::is_sorted(now.cumulative));
    for (size_t i = 0; i < now.cumulative.size(); ++i) {
      ASSERT_GE(now.cumulative[i], last.cumulative[i]);
    }
    last = now;
  }
  threads.clear();
  EXPECT_EQ(histogram.Snapshot().count(), uint64_t{kThreads} * kObservations);
}

TEST(HistogramDeathTest, RefusesBoundsThatDoNotAscend) {
  constexpr double kFalling[] = {1, 0.5};
  constexpr double kTwice[] = {1, 1};
  EXPECT_DEATH(Histogram{kFalling}, "broken invariant");
  EXPECT_DEATH(Histogram{kTwice}, "broken invariant");
}

TEST(HistogramDeathTest, RefusesNoBoundsTooManyAndBoundsThatAreNoTime) {
  const std::vector<double> none;
  std::vector<double> many;
  for (size_t i = 0; i <= Histogram::kMaxBuckets; ++i) many.push_back(double(i + 1));
  constexpr double kZero[] = {0};
  constexpr double kInfinite[] = {1, std::numeric_limits<double>::infinity()};
  constexpr double kNan[] = {std::numeric_limits<double>::quiet_NaN()};
  EXPECT_DEATH(Histogram{none}, "broken invariant");
  EXPECT_DEATH(Histogram{many}, "broken invariant");
  EXPECT_DEATH(Histogram{kZero}, "broken invariant");
  EXPECT_DEATH(Histogram{kInfinite}, "broken invariant");
  EXPECT_DEATH(Histogram{kNan}, "broken invariant");
}

}  // namespace
}  // namespace fathom
