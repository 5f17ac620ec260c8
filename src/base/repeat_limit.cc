#include "base/repeat_limit.h"

#include <algorithm>
#include <utility>

namespace fathom {

std::optional<uint64_t> RepeatLimit::Next(TimePoint now, const RepeatRule& rule) {
  if (Paused(now, rule)) {
    ++suppressed_;
    return std::nullopt;
  }
  logged_ = std::min(logged_ + 1, rule.freely);
  last_ = now;
  return std::exchange(suppressed_, 0);
}

std::optional<uint64_t> RepeatLimit::Rest(TimePoint now, const RepeatRule& rule) {
  if (suppressed_ == 0 || Paused(now, rule)) return std::nullopt;
  last_ = now;
  return std::exchange(suppressed_, 0);
}

std::optional<uint64_t> RepeatLimits::Next(uint64_t key, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (limits_.size() >= kMostKeys && !limits_.contains(key)) {
    std::erase_if(limits_, [&](const auto& entry) { return !entry.second.Paused(now, rule_); });
    if (limits_.size() >= kMostKeys) return others_.Next(now, rule_);
  }
  return limits_[key].Next(now, rule_);
}

}  // namespace fathom
