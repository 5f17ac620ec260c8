#include "routing/decision_ring.h"

#include <algorithm>

namespace fathom {

void DecisionRing::Keep(Decision& decision) {
  const std::lock_guard lock(mutex_);
  decision.number = count_.load(std::memory_order_relaxed) + 1;
  count_.store(decision.number, std::memory_order_relaxed);
  if (!ring_.empty()) ring_[decision.number % ring_.size()] = decision;
}

void DecisionRing::Complete(uint64_t number, std::optional<uint32_t> found, const Waste& waste) {
  const std::lock_guard lock(mutex_);
  if (ring_.empty()) return;
  Decision& decision = ring_[number % ring_.size()];
  if (decision.number != number) return;
  decision.served = true;
  decision.found = found;
  decision.waste = waste;
}

std::vector<Decision> DecisionRing::Latest(size_t most) const {
  const std::lock_guard lock(mutex_);
  const uint64_t count = count_.load(std::memory_order_relaxed);
  const uint64_t kept = std::min<uint64_t>({most, count, ring_.size()});
  std::vector<Decision> latest;
  for (uint64_t i = 0; i < kept; ++i) latest.push_back(ring_[(count - i) % ring_.size()]);
  return latest;
}

}  // namespace fathom
