#include "gateway/admission.h"

namespace fathom {

bool Admission::TakePlace() {
  // Never more than the limit, not for a moment: whoever saw such a moment would take the place for
  // taken, and wait beside a free one.
  int64_t inside = inside_.load();
  while (inside < limit_) {
    if (inside_.compare_exchange_weak(inside, inside + 1)) return true;
  }
  return false;
}

bool Admission::TryEnter() { return waiting_.load() == 0 && TakePlace(); }

void Admission::Leave() {
  inside_.fetch_sub(1);
  if (waiting_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  GrantWaiting();
}

void Admission::GrantWaiting() {
  while (!queue_.empty() && TakePlace()) {
    Wait& first = *queue_.front();
    queue_.pop_front();
    waiting_.fetch_sub(1);
    first.queued_ = false;
    first.loop_.Post([&first] { first.Resume(AdmissionVerdict::kAdmitted); });
  }
}

bool Admission::Wait::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  const std::lock_guard lock(admission_.mutex_);
  if (admission_.waiting_.load() >= admission_.max_waiting_) return false;  // kFull
  place_ = admission_.queue_.insert(admission_.queue_.end(), this);
  queued_ = true;
  loop_.timers().Arm(timer_, deadline_);
  admission_.waiting_.fetch_add(1);
  admission_.GrantWaiting();  // a place may have come free while we queued
  return true;
}

// A waiter whom a place was granted in this very moment is not queued any more: it will be resumed
// by the granting thread's post, and leaves again by itself if nobody wants the place.
void Admission::Wait::GiveUp(AdmissionVerdict verdict) {
  {
    const std::lock_guard lock(admission_.mutex_);
    if (!queued_) return;
    admission_.queue_.erase(place_);
    admission_.waiting_.fetch_sub(1);
    queued_ = false;
  }
  Resume(verdict);
}

void Admission::Wait::Resume(AdmissionVerdict verdict) {
  timer_.Disarm();
  verdict_ = verdict;
  waiting_.resume();
}

}  // namespace fathom
