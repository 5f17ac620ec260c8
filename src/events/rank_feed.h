// Brings what one rank says about its cache into the index.
//
// The rank's place in the index is made by its first stored event, which says how large its blocks
// are. Events with another block size are counted and left out; a reset forgets the size as well,
// because a restarted engine may have a new one.
//
// Threads  One, that of the seat.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "events/cache_event.h"
#include "fleet/feed_board.h"
#include "fleet/worker.h"
#include "index/cache_index.h"

namespace fathom {

class RankFeed {
 public:
  RankFeed(CacheIndex& index, Epochs::Seat& seat, std::shared_ptr<Worker> worker,
           std::shared_ptr<FeedStatus> status);
  ~RankFeed();
  RankFeed(const RankFeed&) = delete;
  RankFeed& operator=(const RankFeed&) = delete;

  void Apply(const EventBatch& batch, TimePoint now);
  void Apply(std::span<const CacheEvent> events, TimePoint now);
  // Nothing that was known is true any more.
  void Reset();
  void ExpireOrphans(TimePoint now);

  FeedStatus& status() { return *status_; }

 private:
  void Apply(const StoredEvent& event, TimePoint now);
  void SetRank(uint32_t rank);
  void CloseHoldings();
  void CopyCounts();
  void FlushRemovals();

  CacheIndex& index_;
  Epochs::Seat& seat_;
  const std::shared_ptr<Worker> worker_;  // whose rank can be chosen as long as it is followed
  const std::shared_ptr<FeedStatus> status_;
  std::unique_ptr<RankHoldings> holdings_;  // null before the first stored event
  // Engines remove block by block; the index likes many at once.
  std::vector<uint64_t> removals_;
  CachePart removals_from_;

  // What earlier holdings counted; counters do not go back.
  struct Earlier {
    uint64_t stored = 0, removed = 0, copies = 0, unknown_removed = 0, parked = 0, adopted = 0,
             lost_orphans = 0, conflicts = 0, evicted = 0, refused = 0, unsupported = 0;
  } earlier_;
};

}  // namespace fathom
