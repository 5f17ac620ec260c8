// How long did operations take? Counts durations in buckets whose width grows with the value, so
// that every percentile is accurate to 1/64 and memory is fixed, however many are recorded.
//
// Range    0 ns to about 4.8 hours; longer durations count as that maximum, but max() is exact.
// Threads  One.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace fathom {

class LatencyHistogram {
 public:
  void Record(Duration value) {
    const uint64_t ns = value.count() < 0 ? 0 : static_cast<uint64_t>(value.count());
    ++buckets_[IndexOf(ns)];
    ++count_;
    sum_ += ns;
    if (ns > max_) max_ = ns;
  }

  uint64_t count() const { return count_; }
  Duration max() const { return Duration(max_); }
  Duration mean() const { return Duration(count_ == 0 ? 0 : sum_ / count_); }

  // The value that `percent` of the recorded durations do not exceed; 0 if there are none.
  Duration Percentile(double percent) const;

  void Add(const LatencyHistogram& other);
  // The durations recorded since `earlier`, an older copy of this one. The result's max() is the
  // upper edge of its last bucket.
  LatencyHistogram Since(const LatencyHistogram& earlier) const;

 private:
  // Values below 2^kBits have a bucket each; above, every power of two has 2^(kBits-1).
  static constexpr unsigned kBits = 7;
  static constexpr unsigned kTopBit = 43;
  static constexpr uint64_t kLongest = (uint64_t{1} << (kTopBit + 1)) - 1;
  static constexpr size_t kHalf = size_t{1} << (kBits - 1);
  static constexpr size_t kBuckets = (kTopBit - kBits + 3) * kHalf;

  static constexpr size_t IndexOf(uint64_t ns) {
    if (ns > kLongest) ns = kLongest;
    const unsigned width = static_cast<unsigned>(std::bit_width(ns));
    if (width <= kBits) return ns;
    const unsigned shift = width - kBits;
    return shift * kHalf + (ns >> shift);
  }
  // The largest value of the bucket.
  static constexpr uint64_t UpperEdge(size_t index) {
    if (index < 2 * kHalf) return index;
    const size_t shift = index / kHalf - 1;
    return (((index - shift * kHalf) + 1) << shift) - 1;
  }

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
};

}  // namespace fathom
