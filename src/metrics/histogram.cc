#include "metrics/histogram.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace fathom {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;
constexpr double kLongestBound = 1e9;  // seconds: 31 years, far below the range of int64_t

int64_t Nanoseconds(double seconds) {
  CHECK(seconds > 0 && seconds <= kLongestBound);
  return std::llround(seconds * kNanosecondsPerSecond);
}

}  // namespace

Histogram::Histogram(std::span<const double> upper_bounds_seconds)
    : upper_bounds_(upper_bounds_seconds.begin(), upper_bounds_seconds.end()) {
  CHECK(!upper_bounds_.empty() && upper_bounds_.size() <= kMaxBuckets);
  bounds_ns_.fill(std::numeric_limits<int64_t>::max());
  int64_t previous = 0;
  for (size_t i = 0; i < upper_bounds_.size(); ++i) {
    bounds_ns_[i] = Nanoseconds(upper_bounds_[i]);
    CHECK(bounds_ns_[i] > previous);
    previous = bounds_ns_[i];
  }
}

HistogramSnapshot Histogram::Snapshot() const {
  HistogramSnapshot snapshot{.upper_bounds = upper_bounds_,
                             .cumulative = std::vector<uint64_t>(upper_bounds_.size() + 1)};
  uint64_t sum_ns = 0;
  for (const Stripe& stripe : stripes_) {
    for (size_t i = 0; i < snapshot.cumulative.size(); ++i) {
      snapshot.cumulative[i] += stripe.buckets[i].load(std::memory_order_relaxed);
    }
    sum_ns += stripe.sum_ns.load(std::memory_order_relaxed);
  }
  for (size_t i = 1; i < snapshot.cumulative.size(); ++i) {
    snapshot.cumulative[i] += snapshot.cumulative[i - 1];
  }
  snapshot.sum = static_cast<double>(sum_ns) / kNanosecondsPerSecond;
  return snapshot;
}

}  // namespace fathom
