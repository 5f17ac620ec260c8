#include "router/fleet/text_record.h"

#include <algorithm>

namespace fathom {

bool TextRecord::Served(uint64_t assumed, uint64_t found) {
  const std::lock_guard lock(mutex_);
  nothing_ = found == 0 ? std::min(nothing_ + 1, kNothing) : 0;
  if (found == 0 && nothing_ < kNothing) return false;
  seen_ = std::min(seen_ + 1, kLeast);
  assumed_ = assumed_ * kMemory + static_cast<double>(assumed);
  found_ = found_ * kMemory + static_cast<double>(std::min(found, assumed));
  if (seen_ < kLeast) return true;
  const double share = found_ / assumed_;
  const bool doubted = credit_.load(std::memory_order_relaxed) == 0;
  const bool believed = share >= (doubted ? kBelieved : kDoubted);
  credit_.store(believed ? std::min(share / kCertain, 1.0) : 0, std::memory_order_relaxed);
  return true;
}

}  // namespace fathom
