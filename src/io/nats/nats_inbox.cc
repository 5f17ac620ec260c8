#include "io/nats/nats_inbox.h"

#include <utility>

namespace fathom {

void NatsInbox::Open(OnMessage on_message, OnState on_state) {
  on_message_ = std::move(on_message);
  on_state_ = std::move(on_state);
  const std::lock_guard lock(mutex_);
  closed_ = false;
}

void NatsInbox::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  waiting_.clear();
  waiting_bytes_ = 0;
}

void NatsInbox::Take(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  counts_.bytes += bytes.size();
  if (waiting_bytes_ + bytes.size() + kOverhead > kMostBytes) {
    ++counts_.missed;
    return;
  }
  waiting_bytes_ += bytes.size() + kOverhead;
  waiting_.emplace_back(bytes);
  if (!std::exchange(draining_, true)) PostDrain();
}

void NatsInbox::Tell(bool up, std::string problem) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  loop_.Post([self = shared_from_this(), up, problem = std::move(problem)] {
    {
      const std::lock_guard inner(self->mutex_);
      if (self->closed_) return;
    }
    self->on_state_(up, problem);
  });
}

NatsInbox::Counts NatsInbox::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void NatsInbox::PostDrain() {
  loop_.Post([self = shared_from_this()] { self->Drain(); });
}

void NatsInbox::Drain() {
  size_t handled = 0;
  for (;;) {
    std::string message;
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || waiting_.empty()) {
        draining_ = false;
        return;
      }
      if (share_.Spent(handled)) return PostDrain();
      message = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= message.size() + kOverhead;
    }
    handled = message.size();
    on_message_(message);
  }
}

}  // namespace fathom
