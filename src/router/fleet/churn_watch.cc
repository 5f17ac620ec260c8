#include "router/fleet/churn_watch.h"

#include <algorithm>

namespace fathom {

void ChurnWatch::Turn(TimePoint now) {
  Window& current = windows_[1];
  if (begun_ && now - current.since < kWindow) return;
  const Window next{.since = now, .stored_at = stored_, .removed_at = removed_};
  windows_[0] = begun_ ? current : next;
  windows_[1] = next;
  begun_ = true;
}

void ChurnWatch::Returned(uint64_t evicted, uint64_t reused, TimePoint now) {
  if (evicted + reused == 0) return;
  Turn(now);
  ++windows_[1].requests;
  windows_[1].evicted += evicted;
  windows_[1].reused += reused;
}

void ChurnWatch::Heard(uint64_t stored, uint64_t removed, uint64_t held, TimePoint now) {
  // Counts that fell belong to a new stream: start again.
  if (stored < stored_ || removed < removed_) begun_ = false;
  stored_ = stored;
  removed_ = removed;
  held_ = held;
  Turn(now);
}

Churn ChurnWatch::Sum(TimePoint now) const {
  const auto& [before, current] = windows_;
  Churn churn{.requests = before.requests + current.requests,
              .evicted = before.evicted + current.evicted,
              .reused = before.reused + current.reused};
  const double minutes = std::max(Seconds(now - before.since) / 60, 1.0 / 60);
  churn.stores = static_cast<double>(stored_ - before.stored_at) / minutes;
  churn.removals = static_cast<double>(removed_ - before.removed_at) / minutes;
  if (churn.removals > 0) {
    const double seconds = 60 * static_cast<double>(held_) / churn.removals;
    churn.lifetime = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  return churn;
}

std::optional<Churn> ChurnWatch::Look(TimePoint now) {
  Turn(now);
  const Churn churn = Sum(now);
  const uint64_t all = churn.evicted + churn.reused;
  const double gone = all == 0 ? 0 : static_cast<double>(churn.evicted) / static_cast<double>(all);
  const bool enough = churn.requests >= kRequests && now - windows_[0].since >= kNotBefore;
  churns_ = churns_ ? gone > kTrust : enough && gone > kDoubt;
  if (!churns_) return std::nullopt;
  return churn;
}

}  // namespace fathom
