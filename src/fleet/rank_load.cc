#include "fleet/rank_load.h"

#include <algorithm>

namespace fathom {
namespace {

// However long a first byte is overdue, some of its prefill is still to come.
constexpr double kMostProgress = 0.9;

}  // namespace

void RankLoad::Enter(Stay& stay, Kind kind, double work, uint64_t context, TimePoint now) {
  const std::lock_guard lock(mutex_);
  stay.here_ = stay.prefilling_ = true;
  stay.kind_ = kind;
  stay.work_ = work;
  stay.context_ = context;
  stay.grown_ = 0;
  stay.before_ = youngest_;
  stay.after_ = nullptr;
  (youngest_ != nullptr ? youngest_->after_ : oldest_) = &stay;
  youngest_ = &stay;
  if (oldest_ == &stay) busy_since_ = now;
  queued_ += work;
  context_ += context;
  ++requests_;
  ++waiting_;
}

void RankLoad::EndPrefill(Stay& stay, TimePoint now) {
  if (!stay.prefilling_) return;
  stay.prefilling_ = false;
  (stay.before_ != nullptr ? stay.before_->after_ : oldest_) = stay.after_;
  (stay.after_ != nullptr ? stay.after_->before_ : youngest_) = stay.before_;
  --waiting_;
  // Sums of fractions drift; an empty queue is the moment to forget it.
  queued_ = oldest_ == nullptr ? 0 : queued_ - stay.work_;
  busy_since_ = now;
}

void RankLoad::FirstByte(Stay& stay, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!stay.prefilling_) return;
  for (Stay* earlier = oldest_; earlier != &stay;) {
    Stay* const next = earlier->after_;
    if (earlier->kind_ == Kind::kSilent) EndPrefill(*earlier, now);
    earlier = next;
  }
  EndPrefill(stay, now);
}

// Silent prefills whose time is over, one after the other.
void RankLoad::EndOverdue(TimePoint now, double unit) {
  while (oldest_ != nullptr && oldest_->kind_ == Kind::kSilent) {
    const TimePoint end = busy_since_ + Duration(static_cast<int64_t>(oldest_->work_ * unit));
    if (now < end) return;
    EndPrefill(*oldest_, end);
  }
}

void RankLoad::Grow(Stay& stay, uint64_t tokens) {
  const std::lock_guard lock(mutex_);
  if (!stay.here_) return;
  stay.grown_ += tokens;
  context_ += tokens;
}

void RankLoad::SetShare(Stay& stay, uint64_t context) {
  const std::lock_guard lock(mutex_);
  stay.context_ = context;
}

void RankLoad::Leave(Stay& stay, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!stay.here_) return;
  const TimePoint busy_since = busy_since_;
  const bool was_oldest = oldest_ == &stay;
  const bool was_prefilling = stay.prefilling_;
  EndPrefill(stay, now);
  // One that left from the middle of the queue says nothing about the others' progress.
  if (was_prefilling && !was_oldest) busy_since_ = busy_since;
  stay.here_ = false;
  context_ -= stay.context_ + stay.grown_;
  --requests_;
}

RankLoad::View RankLoad::Look(TimePoint now, double unit) {
  const std::lock_guard lock(mutex_);
  EndOverdue(now, unit);
  View view{.queued = queued_, .context = context_, .requests = requests_, .waiting = waiting_};
  if (oldest_ == nullptr) return view;
  const double done = static_cast<double>((now - busy_since_).count()) / unit;
  view.backlog = queued_ - std::clamp(done, 0.0, kMostProgress * oldest_->work_);
  return view;
}

}  // namespace fathom
