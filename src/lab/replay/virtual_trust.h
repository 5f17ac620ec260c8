// Whom would the router have doubted, when, and why?
//
// Looks at every rank as often as the keeper of trust does (fleet/trust_keeper.h), in virtual time,
// and keeps what has changed. What the ranks' words are worth steers the requests that follow, as
// in a real router.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "lab/replay/event_path.h"
#include "lab/replay/virtual_engine.h"
#include "router/fleet/rank_trust.h"

namespace fathom {

class VirtualTrust {
 public:
  explicit VirtualTrust(const TrustRules& rules) : rules_(rules) {}

  struct Change {
    TimePoint at{};
    uint32_t engine = 0;  // its number
    TrustState state = TrustState::kProbing;
    TrustCause cause = TrustCause::kNone;
  };

  // When it wants to look again.
  TimePoint next() const { return next_; }
  // To be called for every engine once next() has come, and Looked() after the last of them.
  void Look(const VirtualEngine& engine, RankWitness& witness, const EventPath& path,
            TimePoint now);
  void Looked(TimePoint now);

  const std::vector<Change>& changes() const { return changes_; }

 private:
  struct Seen {
    Trust trust;
    // Engines are asked for these only now and then.
    uint64_t preemptions = 0;
    TimePoint asked{};
  };

  const TrustRules rules_;
  TimePoint next_{};
  std::map<uint32_t, Seen> seen_;  // by the engine's number
  std::vector<Change> changes_;
};

}  // namespace fathom
