// Which deadlines have passed?
//
// A wheel of 1024 slots of one millisecond. Arming and disarming cost a few instructions, which
// matters because every wait on a socket has a deadline and almost none of them fires. A timer
// further away than one turn stays in its slot and is checked once per turn.
//
// Precision  A timer fires at most about a millisecond late, never early.
// Threads    One.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace fathom {

// Embedded in the object that waits. Disarms itself when destroyed.
class Timer {
 public:
  using Callback = void (*)(Timer&);

  explicit Timer(Callback on_fire) : on_fire_(on_fire) {}
  ~Timer() { Unlink(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  bool armed() const { return next_ != nullptr; }
  void Disarm() { Unlink(); }

 private:
  friend class TimerWheel;

  void Unlink() {
    if (next_ == nullptr) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

  Timer* next_ = nullptr;
  Timer* prev_ = nullptr;
  uint64_t tick_ = 0;
  Callback on_fire_;
};

class TimerWheel {
 public:
  explicit TimerWheel(TimePoint start);

  // Arms (or re-arms) the timer. kNever disarms it.
  void Arm(Timer& timer, TimePoint deadline);

  // Fires everything that is due. A callback may arm and disarm any timer.
  void Advance(TimePoint now);

  // Time until a timer can fire, at most one turn; nullopt if no timer is armed.
  std::optional<Duration> UntilNext(TimePoint now);

 private:
  static constexpr uint64_t kSlots = 1024;
  static constexpr Duration kTick = std::chrono::milliseconds(1);

  uint64_t TickOf(TimePoint at) const { return static_cast<uint64_t>((at - start_) / kTick); }
  bool Empty(const Timer& slot) const { return slot.next_ == &slot; }

  const TimePoint start_;
  uint64_t current_ = 0;                            // every tick up to this one has been fired
  std::array<uint64_t, kSlots / 64> occupied_{};    // a bit may stay set after its slot has emptied
  std::array<std::optional<Timer>, kSlots> slots_;  // list heads
};

}  // namespace fathom
