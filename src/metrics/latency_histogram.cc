#include "metrics/latency_histogram.h"

#include <algorithm>
#include <cmath>

namespace fathom {

Duration LatencyHistogram::Percentile(double percent) const {
  static_assert(IndexOf(kLongest) == kBuckets - 1 && UpperEdge(kBuckets - 1) == kLongest);
  if (count_ == 0) return Duration::zero();
  const double share = std::clamp(percent, 0.0, 100.0) / 100;
  const auto rank = std::clamp<uint64_t>(
      static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_))), 1, count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= rank) return Duration(std::min(UpperEdge(i), max_));
  }
  return Duration(max_);
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

LatencyHistogram LatencyHistogram::Since(const LatencyHistogram& earlier) const {
  LatencyHistogram out;
  for (size_t i = 0; i < kBuckets; ++i) {
    out.buckets_[i] = buckets_[i] - earlier.buckets_[i];
    if (out.buckets_[i] > 0) out.max_ = std::min(UpperEdge(i), max_);
  }
  out.count_ = count_ - earlier.count_;
  out.sum_ = sum_ - earlier.sum_;
  return out;
}

}  // namespace fathom
