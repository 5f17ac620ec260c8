#include "router/gateway/dispatch_queue.h"

namespace fathom {

void DispatchQueue::Wake() {
  if (waiting_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  for (auto& [model, line] : lines_) line.front()->Wake();
}

size_t DispatchQueue::Waiting(std::string_view model) const {
  if (waiting_.load(std::memory_order_relaxed) == 0) return 0;
  const std::lock_guard lock(mutex_);
  const auto line = lines_.find(model);
  return line == lines_.end() ? 0 : line->second.size();
}

DispatchQueue::Waiter::Waiter(DispatchQueue& queue, Loop& loop, std::string_view model,
                              TimePoint deadline)
    : WakeableWait(loop, deadline), queue_(queue) {
  const std::lock_guard lock(queue_.mutex_);
  line_ = queue_.lines_.try_emplace(std::string(model)).first;
  place_ = line_->second.insert(line_->second.end(), this);
  if (line_->second.size() == 1) Wake();
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
    line_->second.front()->Wake();
  }
}

}  // namespace fathom
