#include "gateway/dispatch_queue.h"

namespace fathom {

void DispatchQueue::Wake() {
  if (waiting_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  for (auto& [model, line] : lines_) Tell(*line.front());
}

size_t DispatchQueue::Waiting(std::string_view model) const {
  if (waiting_.load(std::memory_order_relaxed) == 0) return 0;
  const std::lock_guard lock(mutex_);
  const auto line = lines_.find(model);
  return line == lines_.end() ? 0 : line->second.size();
}

void DispatchQueue::Tell(Waiter& first) {
  const bool asleep = first.state_ == Waiter::State::kAsleep;
  first.state_ = Waiter::State::kTold;
  if (asleep) first.loop_.Post([&first] { first.Resume(Signal::kTry); });
}

DispatchQueue::Waiter::Waiter(DispatchQueue& queue, Loop& loop, std::string_view model,
                              TimePoint deadline)
    : queue_(queue), loop_(loop), deadline_(deadline), timer_(*this) {
  const std::lock_guard lock(queue_.mutex_);
  line_ = queue_.lines_.try_emplace(std::string(model)).first;
  place_ = line_->second.insert(line_->second.end(), this);
  if (line_->second.size() == 1) state_ = State::kTold;
  queue_.waiting_.fetch_add(1);
}

DispatchQueue::Waiter::~Waiter() {
  const std::lock_guard lock(queue_.mutex_);
  const bool was_first = line_->second.front() == this;
  line_->second.erase(place_);
  queue_.waiting_.fetch_sub(1);
  if (line_->second.empty()) {
    queue_.lines_.erase(line_);
  } else if (was_first) {
    queue_.Tell(*line_->second.front());
  }
}

bool DispatchQueue::Waiter::await_suspend(std::coroutine_handle<> waiting) {
  const std::lock_guard lock(queue_.mutex_);
  if (state_ == State::kTold) {
    state_ = State::kAwake;
    signal_ = Signal::kTry;
    return false;
  }
  waiting_ = waiting;
  state_ = State::kAsleep;
  loop_.timers().Arm(timer_, deadline_);
  return true;
}

// One that is told in this very moment is not asleep any more: it will be resumed by the post.
void DispatchQueue::Waiter::GiveUp(Signal signal) {
  {
    const std::lock_guard lock(queue_.mutex_);
    if (state_ != State::kAsleep) return;
    state_ = State::kAwake;
  }
  Resume(signal);
}

void DispatchQueue::Waiter::Resume(Signal signal) {
  timer_.Disarm();
  signal_ = signal;
  if (signal == Signal::kTry) {
    const std::lock_guard lock(queue_.mutex_);
    state_ = State::kAwake;
  }
  waiting_.resume();
}

}  // namespace fathom
