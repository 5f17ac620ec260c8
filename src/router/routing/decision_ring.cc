#include "router/routing/decision_ring.h"

#include <algorithm>

namespace fathom {

void DecisionRing::Keep(Decision& decision) {
  decision.number = count_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (places_.empty()) return;
  Place& place = places_[decision.number % places_.size()];
  const std::lock_guard lock(place.mutex);
  // A thread that was held up for a whole round does not replace a newer decision.
  if (place.decision.number < decision.number) place.decision = decision;
}

void DecisionRing::Complete(uint64_t number, std::optional<uint32_t> found, const Waste& waste) {
  if (places_.empty()) return;
  Place& place = places_[number % places_.size()];
  const std::lock_guard lock(place.mutex);
  if (place.decision.number != number) return;
  place.decision.served = true;
  place.decision.found = found;
  place.decision.waste = waste;
}

std::vector<Decision> DecisionRing::Latest(size_t most) const {
  const uint64_t count = count_.load(std::memory_order_relaxed);
  const uint64_t kept = std::min<uint64_t>(count, places_.size());
  std::vector<Decision> latest;
  for (uint64_t i = 0; i < kept && latest.size() < most; ++i) {
    const Place& place = places_[(count - i) % places_.size()];
    const std::lock_guard lock(place.mutex);
    // Another number: its thread has not kept it yet, or a newer decision is there.
    if (place.decision.number == count - i) latest.push_back(place.decision);
  }
  return latest;
}

}  // namespace fathom
