// Keeps the trust in every rank: gathers what is known of it, has it judged, and says once what has
// changed.
//
// Everything that speaks about trust asks here: the log, /health, /ready, /metrics.
//
// One voice  A change is one line. One that repeats within a minute is counted, and told of once a
//            minute. What block sizes do to trust is said by BlockSizes, illness by the prober.
//
// Threads    Tick() from one. The rest from any.
// Memory     One entry per rank of the fleet.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "fleet/block_sizes.h"
#include "fleet/feed_board.h"
#include "fleet/fleet.h"
#include "fleet/rank_trust.h"
#include "fleet/trust_words.h"
#include "metrics/exposition.h"

namespace fathom {

class TrustKeeper {
 public:
  // How often Tick() should be called.
  static constexpr Duration kInterval = std::chrono::milliseconds(250);
  static constexpr Duration kRepeats = std::chrono::minutes(1);

  TrustKeeper(const TrustRules& rules, const Fleet& fleet, const BlockSizes& sizes,
              const FeedBoard& feeds, TokenPieces pieces, Log& log);

  void Tick(TimePoint now);

  struct Standing {
    Trust trust;
    TrustWords words;
    std::array<double, kPromptSpaces> credit{1, 1, 1};
    uint64_t cost = 0;
  };
  Standing StandingOf(WorkerId id, uint32_t rank) const;

  // Ranks that can be routed to and are doubted, for whoever wants to know in a sentence.
  struct Doubted {
    std::string url;
    uint32_t rank = 0;
    TrustCause cause = TrustCause::kNone;
  };
  std::vector<Doubted> AllDoubted() const;

  void Collect(const FleetSnapshot& fleet, Exposition& out) const;

 private:
  using RankName = std::pair<WorkerId, uint32_t>;
  struct Entry {
    Standing standing;
    std::string url;
    // Of each cause: when it was last said, and how often it was not said since.
    std::array<TimePoint, kTrustCauses> said{};
    std::array<uint64_t, kTrustCauses> unsaid{};
  };

  // With mutex_ held.
  void Look(const Member& member, Rank& rank, const FeedStatus* feed, TimePoint now);
  void Change(Entry& entry, const Member& member, uint32_t rank, const Standing& next,
              TimePoint now);
  void SayDoubted(const Member& member, uint32_t rank, const Standing& now_is);
  void SayTrusted(const Member& member, uint32_t rank, const Standing& was, const Standing& now_is,
                  TimePoint now);
  void Summarise(TimePoint now);

  const TrustRules rules_;
  const Fleet& fleet_;
  const BlockSizes& sizes_;
  const FeedBoard& feeds_;
  const TokenPieces pieces_;
  Log& log_;
  mutable std::mutex mutex_;
  std::map<RankName, Entry> entries_;  // guarded by mutex_
  // By state and cause; guarded by mutex_.
  std::map<std::pair<TrustState, TrustCause>, uint64_t> changes_;
};

}  // namespace fathom
