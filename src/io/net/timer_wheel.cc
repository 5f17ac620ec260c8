#include "io/net/timer_wheel.h"

#include <algorithm>
#include <bit>

namespace fathom {

TimerWheel::TimerWheel(TimePoint start) : start_(start) {
  for (auto& slot : slots_) {
    slot.emplace(nullptr);
    slot->next_ = slot->prev_ = &*slot;
  }
}

void TimerWheel::Arm(Timer& timer, TimePoint deadline) {
  timer.Unlink();
  if (deadline == kNever) return;
  // Rounded up, so that no timer fires early, and never into a tick that has already fired.
  timer.tick_ = deadline <= start_ ? 0 : TickOf(deadline) + 1;
  timer.tick_ = std::max(timer.tick_, current_ + 1);
  const uint64_t index = timer.tick_ % kSlots;
  Timer& slot = *slots_[index];
  timer.next_ = &slot;
  timer.prev_ = slot.prev_;
  slot.prev_->next_ = &timer;
  slot.prev_ = &timer;
  occupied_[index / 64] |= uint64_t{1} << (index % 64);
}

void TimerWheel::Advance(TimePoint now) {
  const uint64_t target = TickOf(now);
  if (target <= current_) return;
  const uint64_t first = std::max(current_ + 1, target >= kSlots ? target - kSlots + 1 : 0);
  current_ = target;
  for (uint64_t tick = first; tick <= target; ++tick) {
    const uint64_t index = tick % kSlots;
    if ((occupied_[index / 64] & (uint64_t{1} << (index % 64))) == 0) continue;
    // Due timers move to a separate list first, because callbacks may arm and disarm any timer.
    Timer due(nullptr);
    due.next_ = due.prev_ = &due;
    Timer& slot = *slots_[index];
    for (Timer* t = slot.next_; t != &slot;) {
      Timer* const next = t->next_;
      if (t->tick_ <= target) {
        t->Unlink();
        t->next_ = &due;
        t->prev_ = due.prev_;
        due.prev_->next_ = t;
        due.prev_ = t;
      }
      t = next;
    }
    if (Empty(slot)) occupied_[index / 64] &= ~(uint64_t{1} << (index % 64));
    while (due.next_ != &due) {
      Timer& t = *due.next_;
      t.Unlink();
      t.on_fire_(t);
    }
    due.next_ = due.prev_ = nullptr;
  }
}

std::optional<Duration> TimerWheel::UntilNext(TimePoint now) {
  for (uint64_t ahead = 1; ahead <= kSlots;) {
    const uint64_t index = (current_ + ahead) % kSlots;
    const uint64_t word = occupied_[index / 64] >> (index % 64);
    if (word == 0) {
      ahead += 64 - index % 64;
      continue;
    }
    ahead += static_cast<uint64_t>(std::countr_zero(word));
    if (ahead > kSlots) break;
    const uint64_t found = (current_ + ahead) % kSlots;
    if (!Empty(*slots_[found])) {
      const TimePoint at = start_ + static_cast<int64_t>(current_ + ahead) * kTick;
      return std::max<Duration>(at - now, Duration::zero());
    }
    occupied_[found / 64] &= ~(uint64_t{1} << (found % 64));
  }
  return std::nullopt;
}

}  // namespace fathom
