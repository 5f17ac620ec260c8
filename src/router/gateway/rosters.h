// Which ranks are candidates for this model's requests? One loop's rosters, made when the fleet has
// changed and used until it changes again. Open circuit breakers are known likewise, so that a
// broken worker does not make every decision look at all others.
//
// Threads  One.
// Memory   At most kMost rosters; models with the same workers share one.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "router/fleet/fleet.h"
#include "router/routing/roster.h"

namespace fathom {

// Whether a request can name the worker's rank. TensorRT-LLM chooses among its ranks by itself, so
// its worker is one place.
bool CanBeTold(const Worker& worker);

// Writes every rank of the eligible workers into `places`. With `wanted`, only the rank of that
// number, for workers that have it.
void ListPlaces(std::span<const Member* const> eligible, std::optional<uint32_t> wanted,
                std::vector<Place>& places);

class Rosters {
 public:
  static constexpr size_t kMost = 32;

  // The ranks of all routable workers that serve the model; valid until the next call. Its turn has
  // started, and workers are excluded whose circuit breaker allows no request now.
  Roster& Of(const FleetSnapshot& fleet, std::string_view model, TimePoint now);

 private:
  using Members = std::vector<const Member*>;
  struct Entry {
    std::vector<const Members*> lists;  // of the models that have these members
    Roster roster;
    std::vector<uint32_t> broken;      // positions of workers whose circuit breaker is open,
    uint64_t breakers = ~uint64_t{0};  // at this number of the pulse
  };

  Entry* Find(const Members& members);
  Entry& Get(const Members& members);
  static void ExcludeBroken(Entry& entry, const FleetPulse& pulse, TimePoint now);

  uint64_t fleet_ = 0;        // the number of the snapshot
  uint64_t layout_ = 0;       // of its pulse
  std::list<Entry> entries_;  // the last used one first
  std::vector<Place> places_;
};

}  // namespace fathom
