// How many of the observed durations were at most this long?
//
// Threads  Any, without locks. All atomics are relaxed and pair with nothing (as in counter.h).
// Memory   Fixed size, about 2 KiB; Observe never allocates. Neither copied nor moved.
// Staleness  A snapshot taken while others observe may miss the latest observations, and its sum
//          may be some observations ahead of or behind its buckets. Its count is always the sum of
//          its buckets, so text made from one snapshot never contradicts itself.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "metrics/stripe.h"

namespace fathom {

// The content of a Histogram at one moment, in the form that Prometheus expects.
struct HistogramSnapshot {
  std::vector<double> upper_bounds;  // seconds, ascending, without +Inf
  std::vector<uint64_t> cumulative;  // one per upper bound, then +Inf
  double sum = 0;                    // seconds

  uint64_t count() const { return cumulative.empty() ? 0 : cumulative.back(); }
};

class Histogram {
 public:
  static constexpr size_t kMaxBuckets = 24;  // +Inf not counted

  // Bounds are inclusive, positive, and ascend by at least a nanosecond.
  explicit Histogram(std::span<const double> upper_bounds_seconds);
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  // A negative duration counts as zero.
  void Observe(Duration duration) {
    const int64_t ns = duration.count() < 0 ? 0 : duration.count();
    Stripe& stripe = stripes_[StripeOfThisThread()];
    stripe.buckets[BucketOf(ns)].fetch_add(1, std::memory_order_relaxed);
    stripe.sum_ns.fetch_add(static_cast<uint64_t>(ns), std::memory_order_relaxed);
  }

  // The sum wraps at 2^64 ns, 584 years of observed time, which a busy fleet can reach in weeks.
  // Stripes are added in the same arithmetic, so the wrap looks like one counter reset, which
  // Prometheus' rate() handles.
  HistogramSnapshot Snapshot() const;

 private:
  static constexpr size_t kSlots = 32;  // a power of two above kMaxBuckets, for the search

  struct alignas(kCacheLine) Stripe {
    std::array<std::atomic<uint64_t>, kMaxBuckets + 1> buckets{};
    std::atomic<uint64_t> sum_ns{0};
  };

  // The number of bounds below ns: a binary search of five conditional moves, without a branch that
  // mixed durations could mispredict.
  size_t BucketOf(int64_t ns) const {
    size_t below = 0;
    for (size_t step = kSlots / 2; step > 0; step /= 2) {
      below += bounds_ns_[below + step - 1] < ns ? step : 0;
    }
    return below;
  }

  std::vector<double> upper_bounds_;           // as given, for the text
  std::array<int64_t, kSlots - 1> bounds_ns_;  // unused slots hold the maximum, which is never
                                               // below ns
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace fathom
