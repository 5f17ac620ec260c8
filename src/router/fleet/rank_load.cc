#include "router/fleet/rank_load.h"

#include <algorithm>

namespace fathom {
namespace {

// However long a first byte is overdue, part of its prefill still counts as pending.
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
  if (oldest_ == &stay) {
    own_since_ = now;
    if (foreign_.waiting == 0) busy_since_ = now;
  }
  queued_ += work;
  context_ += context;
  ++requests_;
  ++waiting_;
  PublishOwn();
}

void RankLoad::EndPrefill(Stay& stay, TimePoint now) {
  if (!stay.prefilling_) return;
  stay.prefilling_ = false;
  (stay.before_ != nullptr ? stay.before_->after_ : oldest_) = stay.after_;
  (stay.after_ != nullptr ? stay.after_->before_ : youngest_) = stay.before_;
  --waiting_;
  // Floating-point sums drift; an empty queue resets the sum to exactly zero.
  queued_ = oldest_ == nullptr ? 0 : queued_ - stay.work_;
  own_since_ = busy_since_ = now;
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
  PublishOwn();
}

// Ends the silent prefills whose estimated time is over, oldest first.
void RankLoad::EndOverdue(TimePoint now, double unit) {
  while (oldest_ != nullptr && oldest_->kind_ == Kind::kSilent) {
    const TimePoint end = Silence{own_since_, oldest_->work_}.End(unit);
    if (now < end) return;
    EndPrefill(*oldest_, end);
  }
}

void RankLoad::Grow(Stay& stay, uint64_t tokens) {
  const std::lock_guard lock(mutex_);
  if (!stay.here_) return;
  stay.grown_ += tokens;
  context_ += tokens;
  PublishOwn();
}

void RankLoad::SetShare(Stay& stay, uint64_t context) {
  const std::lock_guard lock(mutex_);
  stay.context_ = context;
}

void RankLoad::Leave(Stay& stay, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!stay.here_) return;
  const TimePoint own_since = own_since_;
  const TimePoint busy_since = busy_since_;
  const bool was_oldest = oldest_ == &stay;
  const bool was_prefilling = stay.prefilling_;
  EndPrefill(stay, now);
  // A request that left from the middle of the queue does not show the others' progress.
  if (was_prefilling && !was_oldest) {
    own_since_ = own_since;
    busy_since_ = busy_since;
  }
  stay.here_ = false;
  context_ -= stay.context_ + stay.grown_;
  --requests_;
  PublishOwn();
}

void RankLoad::SetForeign(const ForeignLoad& foreign) {
  const std::lock_guard lock(mutex_);
  const TimePoint before = foreign_.busy_since;
  foreign_ = foreign;
  foreign_.busy_since = std::max(before, foreign.busy_since);
  Publish();
}

RankLoad::Placed RankLoad::placed() const {
  const std::lock_guard lock(mutex_);
  return {.queued = queued_,
          .oldest = OldestWork(),
          .busy_since = busy_since_,
          .context = context_,
          .requests = requests_,
          .waiting = waiting_};
}

double RankLoad::LargestOldest() const { return std::max(OldestWork(), foreign_.oldest); }

// Without a further event the prefill in progress comes at most as far as kMostProgress.
LoadShare RankLoad::Share() const {
  LoadShare share{.context = context_ + foreign_.context,
                  .requests = requests_ + foreign_.requests,
                  .waiting = waiting_ + foreign_.waiting};
  if (share.waiting == 0) return share;
  share.silent = oldest_ != nullptr && oldest_->kind_ == Kind::kSilent;
  share.backlog = std::max(queued_ + foreign_.queued - kMostProgress * LargestOldest(), 0.0);
  return share;
}

void RankLoad::Publish() {
  const auto ticks = [](TimePoint time) { return time.time_since_epoch().count(); };
  const TimePoint busy_since = std::max(busy_since_, foreign_.busy_since);
  seen_.queued.store(queued_ + foreign_.queued, std::memory_order_relaxed);
  seen_.oldest.store(LargestOldest(), std::memory_order_relaxed);
  seen_.busy_since.store(ticks(busy_since), std::memory_order_relaxed);
  seen_.own_oldest.store(OldestWork(), std::memory_order_relaxed);
  seen_.own_since.store(ticks(own_since_), std::memory_order_relaxed);
  seen_.context.store(context_ + foreign_.context, std::memory_order_relaxed);
  seen_.requests.store(requests_ + foreign_.requests, std::memory_order_relaxed);
  seen_.waiting.store(waiting_ + foreign_.waiting, std::memory_order_relaxed);
  const LoadShare share = Share();
  seen_.silent.store(share.silent, std::memory_order_relaxed);
  if (place_ == nullptr || share == shared_) return;
  shared_ = share;
  place_->Update(share);
}

void RankLoad::PublishOwn() {
  Publish();
  if (place_ != nullptr) place_->Touch();
}

void RankLoad::Stand(LoadBoard& board, const std::string& group) {
  const std::lock_guard lock(mutex_);
  shared_ = Share();
  place_ = board.Find(group, shared_);
}

RankLoad::Standing RankLoad::standing() const {
  const std::lock_guard lock(mutex_);
  return place_ == nullptr ? Standing{} : Standing{place_->block(), place_->place()};
}

RankLoad::View RankLoad::Look(TimePoint now, double unit) {
  if (silent()) {
    const std::lock_guard lock(mutex_);
    EndOverdue(now, unit);
    PublishOwn();
  }
  return LookAgain(now, unit);
}

RankLoad::Silence RankLoad::silence() const {
  return {.since = TimePoint(Duration(seen_.own_since.load(std::memory_order_relaxed))),
          .work = seen_.own_oldest.load(std::memory_order_relaxed)};
}

RankLoad::View RankLoad::LookAgain(TimePoint now, double unit) const {
  View view{.queued = seen_.queued.load(std::memory_order_relaxed),
            .context = seen_.context.load(std::memory_order_relaxed),
            .requests = seen_.requests.load(std::memory_order_relaxed),
            .waiting = seen_.waiting.load(std::memory_order_relaxed)};
  const double oldest = seen_.oldest.load(std::memory_order_relaxed);
  if (view.waiting == 0) return view;
  const TimePoint since{Duration(seen_.busy_since.load(std::memory_order_relaxed))};
  const double done = static_cast<double>((now - since).count()) / unit;
  view.backlog = std::max(view.queued - std::clamp(done, 0.0, kMostProgress * oldest), 0.0);
  return view;
}

}  // namespace fathom
