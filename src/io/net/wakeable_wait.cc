#include "io/net/wakeable_wait.h"

namespace fathom {

bool WakeableWait::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  cause_ = WakeCause::kWoken;
  State expected = State::kRunning;
  if (!state_.compare_exchange_strong(expected, State::kSuspended)) return false;  // woken before
  loop_.timers().Arm(timer_, deadline_);
  return true;
}

WakeCause WakeableWait::await_resume() {
  if (cause_ == WakeCause::kWoken) state_.exchange(State::kRunning);
  return cause_;
}

void WakeableWait::Wake() {
  if (state_.exchange(State::kWoken) != State::kSuspended) return;
  loop_.Post([this] { Resume(); });
}

void WakeableWait::WakeNow() {
  if (state_.exchange(State::kWoken) == State::kSuspended) Resume();
}

// If a wake came first, the waker's post resumes the coroutine.
void WakeableWait::GiveUp(WakeCause cause) {
  State expected = State::kSuspended;
  if (!state_.compare_exchange_strong(expected, State::kRunning)) return;
  cause_ = cause;
  Resume();
}

void WakeableWait::Resume() {
  timer_.Disarm();
  waiting_.resume();
}

}  // namespace fathom
