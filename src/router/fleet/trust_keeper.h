// What is the trust state of every rank? Collects the facts, has each rank judged, and logs each
// change once.
//
// The single source for trust: the log, /health, /ready and /metrics use it.
//
// Logging    A change is one line. A change that repeats within a minute is counted and summarised
//            once a minute. BlockSizes logs changes due to block sizes, the prober those of health.
//
// Threads    Tick() from one. The rest from any.
// Memory     One entry per rank of the fleet.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/repeat_limit.h"
#include "metrics/exposition.h"
#include "router/fleet/block_sizes.h"
#include "router/fleet/feed_board.h"
#include "router/fleet/fleet.h"
#include "router/fleet/rank_trust.h"
#include "router/fleet/trust_words.h"

namespace fathom {

class TrustKeeper {
 public:
  // How often Tick() should be called.
  static constexpr Duration kInterval = std::chrono::milliseconds(250);
  // So many ranks are judged each time, in turn: in a fleet of eight times as many, each one every
  // two seconds.
  static constexpr size_t kMostAtOnce = 512;

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

  // Routable ranks that are doubted, for one-sentence summaries.
  struct Doubted {
    std::string url;
    uint32_t rank = 0;
    TrustCause cause = TrustCause::kNone;
  };
  std::vector<Doubted> AllDoubted() const;

  void Collect(const FleetSnapshot& fleet, Exposition& out) const;

 private:
  using RankName = std::pair<WorkerId, uint32_t>;
  struct NameHash {
    size_t operator()(const RankName& name) const { return name.first.value() * 257 + name.second; }
  };
  struct Entry {
    Standing standing;
    const Worker* worker = nullptr;  // in the last fleet that was seen
    Trust agreed;                    // by block sizes and health,
    uint64_t sizes = 0;              // at this version
    // By cause: when it was last logged, and how many changes were suppressed since.
    std::array<RepeatLimit, kTrustCauses> lines;  // that it is doubted
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
  // Guarded by mutex_, as everything below.
  std::unordered_map<RankName, Entry, NameHash> entries_;
  std::shared_ptr<const FleetSnapshot> fleet_seen_;  // of the last Tick()
  size_t next_ = 0;                                  // the member that was looked at last
  bool any_unsaid_ = false;                          // an entry has changes to summarise
  // By state and cause.
  std::map<std::pair<TrustState, TrustCause>, uint64_t> changes_;
};

}  // namespace fathom
