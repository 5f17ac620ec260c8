// How many prompt tokens were recently prefilled again because of this rank?
//
// Counted since its last change of state, plus up to two kReach before it, so that the first log
// line about a doubt can include its cost so far.
//
// Threads  One.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace fathom {

class WasteAccount {
 public:
  static constexpr Duration kReach = std::chrono::minutes(5);  // covers one to two of them

  void Add(uint64_t tokens, TimePoint now) {
    Turn(now);
    recent_[1] += tokens;
    since_change_ += tokens;
  }
  // The rank has changed its state.
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

  std::array<uint64_t, 2> recent_{};  // previous window, current window
  uint64_t since_change_ = 0;
  TimePoint since_{};
};

}  // namespace fathom
