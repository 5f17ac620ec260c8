#include "router/gateway/rosters.h"

#include <algorithm>
#include <utility>

namespace fathom {

bool CanBeTold(const Worker& worker) {
  return worker.ranks.several() && worker.report.engine() != EngineKind::kTrtllm;
}

void ListPlaces(std::span<const Member* const> eligible, std::optional<uint32_t> wanted,
                std::vector<Place>& places) {
  places.clear();
  for (const Member* member : eligible) {
    Worker* const worker = member->worker.get();
    Rank* const named = wanted ? worker->ranks.Find(*wanted) : nullptr;
    if (named != nullptr) {
      places.push_back({worker, named});
    } else if (!CanBeTold(*worker)) {
      places.push_back({worker, &worker->ranks.only()});
    } else {
      worker->ranks.ForEach([&](Rank& rank) { places.push_back({worker, &rank}); });
    }
  }
}

Rosters::Entry* Rosters::Find(const Members& members) {
  const auto at = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return std::ranges::find(entry.lists, &members) != entry.lists.end();
  });
  if (at == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at);
  return &entries_.front();
}

Rosters::Entry& Rosters::Get(const Members& members) {
  if (Entry* const entry = Find(members)) return *entry;
  const auto alike = std::ranges::find_if(
      entries_, [&](const Entry& other) { return *other.lists.front() == members; });
  if (alike != entries_.end()) {
    alike->lists.push_back(&members);
    return *alike;
  }
  if (entries_.size() == kMost) entries_.pop_back();
  ListPlaces(members, std::nullopt, places_);
  Entry& entry = entries_.emplace_front();
  entry.roster.Assign(places_, Roster::Blocks::kUsed);
  entry.lists.push_back(&members);
  return entry;
}

void Rosters::ExcludeBroken(Entry& entry, const FleetPulse& pulse, TimePoint now) {
  const uint64_t breakers = pulse.breakers.load(std::memory_order_acquire);
  if (std::exchange(entry.breakers, breakers) != breakers) {
    entry.broken.clear();
    for (uint32_t i = 0; i < entry.roster.size(); ++i) {
      if (entry.roster.at(i).worker->breaker.open()) entry.broken.push_back(i);
    }
  }
  for (const uint32_t i : entry.broken) {
    if (!entry.roster.at(i).worker->breaker.Allows(now)) entry.roster.Exclude(i);
  }
}

Roster& Rosters::Of(const FleetSnapshot& fleet, std::string_view model, TimePoint now) {
  // Read before the ranks: a change while they are read is seen next time.
  const uint64_t layout = fleet.pulse().layout.load(std::memory_order_acquire);
  if (fleet_ != fleet.number() || layout_ != layout) {
    entries_.clear();
    fleet_ = fleet.number();
    layout_ = layout;
  }
  Entry& entry = Get(fleet.Serving(model));
  entry.roster.StartTurn();
  ExcludeBroken(entry, fleet.pulse(), now);
  return entry.roster;
}

}  // namespace fathom
