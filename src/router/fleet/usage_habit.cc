#include "router/fleet/usage_habit.h"

#include <algorithm>

namespace fathom {

UsageHabit::Plan UsageHabit::Next() {
  const Known known = known_.load(std::memory_order_relaxed);
  Plan plan{.null_unasked = known.null_unasked != 0, .life = known.life};
  if (known.state != State::kOnlyIfAsked) return plan;
  const uint32_t turn = turn_.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool seldom = known.lacking >= kPatience;
  plan.ask = seldom ? turn % kSeldom == 0 : turn % kLeftAlone != 0;
  return plan;
}

template <class Change>
void UsageHabit::Revise(const Plan& plan, Change change) {
  Known known = known_.load(std::memory_order_relaxed);
  for (;;) {
    if (known.life != plan.life) return;
    Known next = known;
    change(next);
    if (known_.compare_exchange_weak(known, next, std::memory_order_relaxed)) return;
  }
}

void UsageHabit::LearnUnasked(const Plan& plan, bool told, bool nulls) {
  Revise(plan, [&](Known& known) {
    if (known.state == State::kRefuses) return;
    known.state = told ? State::kAlways : State::kOnlyIfAsked;
    known.null_unasked = nulls ? 1 : 0;
  });
}

void UsageHabit::LearnAsked(const Plan& plan, bool details) {
  Revise(plan, [&](Known& known) {
    known.lacking = details ? 0 : std::min<uint16_t>(known.lacking + 1, kPatience);
  });
}

void UsageHabit::LearnRefused(const Plan& plan) {
  Revise(plan, [](Known& known) { known.state = State::kRefuses; });
}

void UsageHabit::Reset() {
  Known known = known_.load(std::memory_order_relaxed);
  while (!known_.compare_exchange_weak(known, Known{.life = known.life + 1},
                                       std::memory_order_relaxed)) {
  }
}

}  // namespace fathom
