#include "fleet/circuit_breaker.h"

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
  // The trial is out: hold the others back until it is decided, or for as long as it may take.
  retry_at_.store(Ticks(now + open_for_), std::memory_order_relaxed);
  trial_.store(true, std::memory_order_relaxed);
}

void CircuitBreaker::OnSuccess() {
  if (failures_.load(std::memory_order_relaxed) == 0) return;
  failures_.store(0, std::memory_order_relaxed);
  trial_.store(false, std::memory_order_relaxed);
}

void CircuitBreaker::OnFailure(TimePoint now) {
  // A worker that dies with a hundred requests in flight has failed once, not a hundred times.
  if (open() && !trial_.exchange(false, std::memory_order_relaxed)) return;
  const uint32_t failures = failures_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (failures < threshold_) return;
  const uint32_t doublings = std::min<uint32_t>(failures - threshold_, 16);
  const Duration wait = std::min<Duration>(open_for_ * (int64_t{1} << doublings), kMaxOpen);
  retry_at_.store(Ticks(now + wait), std::memory_order_relaxed);
}

void CircuitBreaker::Trip(TimePoint now) {
  failures_.store(threshold_, std::memory_order_relaxed);
  trial_.store(false, std::memory_order_relaxed);
  retry_at_.store(Ticks(now + open_for_), std::memory_order_relaxed);
}

}  // namespace fathom
