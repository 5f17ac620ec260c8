#include "router/fleet/circuit_breaker.h"

#include <algorithm>

namespace fathom {
namespace {

int64_t Ticks(TimePoint at) { return at.time_since_epoch().count(); }

}  // namespace

bool CircuitBreaker::Allows(TimePoint now) const {
  return !open() || Ticks(now) >= retry_at_.load(std::memory_order_relaxed);
}

void CircuitBreaker::OnSend(TimePoint now) {
  if (!open()) return;
  // A trial is in flight: allow no other request until it has a result, or until open_for_ has
  // passed.
  retry_at_.store(Ticks(now + open_for_), std::memory_order_relaxed);
  trial_.store(true, std::memory_order_relaxed);
}

void CircuitBreaker::OnSuccess() {
  if (failures_.load(std::memory_order_relaxed) == 0 && !shown_.load(std::memory_order_relaxed)) {
    return;
  }
  failures_.store(0, std::memory_order_relaxed);
  trial_.store(false, std::memory_order_relaxed);
  Show(false);
  if (open()) Show(true);  // failures of other threads opened it meanwhile
}

void CircuitBreaker::OnFailure(TimePoint now) {
  // When a worker dies with a hundred requests in flight, that counts as one failure, not a
  // hundred.
  if (open() && !trial_.exchange(false, std::memory_order_relaxed)) return;
  const uint32_t failures = failures_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (failures < threshold_) return;
  const uint32_t doublings = std::min<uint32_t>(failures - threshold_, 16);
  const Duration wait = std::min<Duration>(open_for_ * (int64_t{1} << doublings), kMaxOpen);
  retry_at_.store(Ticks(now + wait), std::memory_order_relaxed);
  Show(true);
}

void CircuitBreaker::Trip(TimePoint now) {
  failures_.store(threshold_, std::memory_order_relaxed);
  trial_.store(false, std::memory_order_relaxed);
  retry_at_.store(Ticks(now + open_for_), std::memory_order_relaxed);
  Show(true);
}

void CircuitBreaker::Show(bool open) {
  if (pulse_ == nullptr || shown_.exchange(open, std::memory_order_relaxed) == open) return;
  pulse_->breakers.fetch_add(1, std::memory_order_release);
}

}  // namespace fathom
