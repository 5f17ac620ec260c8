#include "router/gateway/tokenize_roster.h"

#include <algorithm>

namespace fathom {

std::expected<std::shared_ptr<Worker>, TokenFailure> TokenizeRoster::Select(
    const FleetSnapshot& fleet, std::string_view model, std::span<const WorkerId> tried,
    TimePoint now) {
  const auto& serving = fleet.Serving(model);
  const std::lock_guard lock(mutex_);
  const size_t first = turn_++;
  size_t unsupported = 0;
  size_t compared = 0;
  const Member* chosen = nullptr;
  Burden least;
  for (size_t i = 0; i < serving.size() && compared < kCompared; ++i) {
    const Member& member = *serving[(first + i) % serving.size()];
    const WorkerId id = member.worker->id();
    if (Unsupported(id, now)) {
      ++unsupported;
      continue;
    }
    if (std::ranges::find(tried, id) != tried.end() || !Available(member, now)) continue;
    ++compared;
    const Burden burden = BurdenOf(*member.worker, now);
    if (chosen != nullptr && burden >= least) continue;
    chosen = &member;
    least = burden;
  }
  if (chosen != nullptr) {
    Standing& standing = standings_[chosen->worker->id()];
    if (standing.open++ == 0) standing.quiet_since = now;
    return chosen->worker;
  }
  if (serving.empty() || unsupported < serving.size()) return std::unexpected(TokenFailure::kError);
  return std::unexpected(TokenFailure::kUnsupported);
}

bool TokenizeRoster::Available(const Member& member, TimePoint now) const {
  if (member.worker->breaker.open()) return false;
  const auto found = standings_.find(member.worker->id());
  if (found == standings_.end()) return true;
  const Standing& standing = found->second;
  if (now < standing.rests_until) return false;
  return standing.open == 0 || now - standing.quiet_since <= std::max(kSilence, patience_);
}

TokenizeRoster::Burden TokenizeRoster::BurdenOf(const Worker& worker, TimePoint now) const {
  Burden burden{.load = worker.in_flight_in_all()};
  const auto found = standings_.find(worker.id());
  if (found == standings_.end()) return burden;
  const Standing& standing = found->second;
  burden.load += standing.open;
  burden.silent = standing.open > 0 && now - standing.quiet_since > patience_;
  return burden;
}

bool TokenizeRoster::Unsupported(WorkerId id, TimePoint now) const {
  const auto found = standings_.find(id);
  return found != standings_.end() && now < found->second.unsupported_until;
}

void TokenizeRoster::Report(WorkerId id, Outcome outcome, TimePoint now) {
  const std::lock_guard lock(mutex_);
  Standing& standing = standings_[id];
  --standing.open;
  standing.quiet_since = now;
  if (outcome == Outcome::kFailed) standing.rests_until = now + kRest;
  if (outcome == Outcome::kUnsupported) standing.unsupported_until = now + kUnsupportedFor;
  // Drop the state of workers that have left.
  if (standings_.size() <= 2 * Fleet::kMaxWorkers) return;
  std::erase_if(standings_, [](const auto& entry) { return entry.second.open == 0; });
}

size_t TokenizeRoster::open() {
  const std::lock_guard lock(mutex_);
  size_t all = 0;
  for (const auto& [id, standing] : standings_) all += standing.open;
  return all;
}

}  // namespace fathom
