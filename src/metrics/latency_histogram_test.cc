#include "metrics/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace fathom {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(LatencyHistogram, SaysZeroWhenNothingWasRecorded) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.Percentile(99), Duration::zero());
  EXPECT_EQ(histogram.mean(), Duration::zero());
}

TEST(LatencyHistogram, KeepsSmallValuesExactly) {
  LatencyHistogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.Record(nanoseconds(i));
  EXPECT_EQ(histogram.Percentile(0), nanoseconds(1));
  EXPECT_EQ(histogram.Percentile(50), nanoseconds(50));
  EXPECT_EQ(histogram.Percentile(99), nanoseconds(99));
  EXPECT_EQ(histogram.Percentile(100), nanoseconds(100));
}

TEST(LatencyHistogram, IsRightToWithinOneSixtyFourthOverManyMagnitudes) {
  Random random(7);
  LatencyHistogram histogram;
  std::vector<int64_t> sorted;
  for (int i = 0; i < 20000; ++i) {
    const auto ns = static_cast<int64_t>(std::exp(random.Unit() * 30));
    sorted.push_back(ns);
    histogram.Record(nanoseconds(ns));
  }
  std::ranges::sort(sorted);
  for (const double percent : {1.0, 10.0, 50.0, 90.0, 99.0, 99.9}) {
    const auto rank = static_cast<size_t>(std::ceil(percent / 100 * 20000)) - 1;
    const auto exact = static_cast<double>(sorted[rank]);
    const auto found = static_cast<double>(histogram.Percentile(percent).count());
    EXPECT_GE(found, exact) << percent;
    EXPECT_LE(found, exact * (1 + 1.0 / 64)) << percent;
  }
}

TEST(LatencyHistogram, NeverAnswersMoreThanTheLongestValue) {
  LatencyHistogram histogram;
  histogram.Record(milliseconds(1));
  EXPECT_EQ(histogram.Percentile(99.9), milliseconds(1));
}

TEST(LatencyHistogram, TakesNegativeAndEndlessValues) {
  LatencyHistogram histogram;
  histogram.Record(nanoseconds(-5));
  histogram.Record(hours(100));
  EXPECT_EQ(histogram.Percentile(50), nanoseconds(0));
  EXPECT_EQ(histogram.max(), hours(100));
  EXPECT_GT(histogram.Percentile(100), hours(4));
}

TEST(LatencyHistogram, AddsUpAndTakesApart) {
  LatencyHistogram total;
  for (int i = 0; i < 10; ++i) total.Record(milliseconds(1));
  const LatencyHistogram earlier = total;
  LatencyHistogram later;
  for (int i = 0; i < 30; ++i) later.Record(milliseconds(8));
  total.Add(later);
  EXPECT_EQ(total.count(), 40u);
  const LatencyHistogram window = total.Since(earlier);
  EXPECT_EQ(window.count(), 30u);
  EXPECT_EQ(window.mean(), milliseconds(8));
  EXPECT_EQ(window.Percentile(1), milliseconds(8));
}

}  // namespace
}  // namespace fathom
