// How many prompt tokens were prefilled again because of this rank, lately?
//
// Counted since its last change of state, and at most kReach before it, so that the first line
// about a doubt can say what it has cost already.
//
// Threads  One.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace fathom {

class WasteAccount {
 public:
  static constexpr Duration kReach = std::chrono::minutes(5);  // at least one, at most two of them

  void Add(uint64_t tokens, TimePoint now) {
    Turn(now);
    recent_[1] += tokens;
    since_change_ += tokens;
  }
  // The rank is in another state now.
  void Change(TimePoint now) {
    Turn(now);
    since_change_ = recent_[0] + recent_[1];
    recent_ = {};
  }
  uint64_t tokens() const { return since_change_; }

 private:
  void Turn(TimePoint now) {
    if (now - since_ < kReach) return;
    recent_ = {now - since_ < 2 * kReach ? recent_[1] : 0, 0};
    since_ = now;
  }

  std::array<uint64_t, 2> recent_{};  // the time before, and this one
  uint64_t since_change_ = 0;
  TimePoint since_{};
};

}  // namespace fathom
