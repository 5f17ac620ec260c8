#include "router/gateway/admission.h"

namespace fathom {

bool Admission::TakePlace() {
  // Never above the limit, not even for a moment: a waiter that saw such a value would regard a
  // free place as taken, and keep waiting.
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
    first.Wake();
  }
}

bool Admission::Wait::await_ready() {
  const std::lock_guard lock(admission_.mutex_);
  full_ = admission_.waiting_.load() >= admission_.max_waiting_;
  if (full_) return true;
  place_ = admission_.queue_.insert(admission_.queue_.end(), this);
  queued_ = true;
  admission_.waiting_.fetch_add(1);
  admission_.GrantWaiting();  // a place may have become free while we queued
  return false;
}

// A waiter that was granted a place is no longer queued, even if its deadline passed at the same
// moment. It leaves again by itself if the request was cancelled.
AdmissionVerdict Admission::Wait::await_resume() {
  if (full_) return AdmissionVerdict::kFull;
  const WakeCause cause = WakeableWait::await_resume();
  const std::lock_guard lock(admission_.mutex_);
  if (!queued_) return AdmissionVerdict::kAdmitted;
  admission_.queue_.erase(place_);
  admission_.waiting_.fetch_sub(1);
  queued_ = false;
  return cause == WakeCause::kTimedOut ? AdmissionVerdict::kTimedOut : AdmissionVerdict::kCancelled;
}

}  // namespace fathom
