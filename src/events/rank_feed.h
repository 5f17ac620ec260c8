// Brings what one rank says about its cache into the index.
//
// The rank's place in the index is made by its first stored event, which proves how large its
// blocks are; whether blocks of that size may be indexed is the fleet's agreement (BlockSizes).
// Events with another size than the rank's are counted and left out, until there are no others.
// Whatever empties the rank forgets the size as well, because a restarted engine may have a new
// one.
//
// Threads  One, that of the seat.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "events/cache_event.h"
#include "fleet/block_sizes.h"
#include "fleet/feed_board.h"
#include "fleet/worker.h"
#include "index/cache_index.h"

namespace fathom {

class RankFeed {
 public:
  // Without `sizes`, every size may be indexed.
  RankFeed(CacheIndex& index, Epochs::Seat& seat, std::shared_ptr<Worker> worker,
           std::shared_ptr<FeedStatus> status, BlockSizes* sizes = nullptr);
  ~RankFeed();
  RankFeed(const RankFeed&) = delete;
  RankFeed& operator=(const RankFeed&) = delete;

  void Apply(const EventBatch& batch, TimePoint now);
  void Apply(std::span<const CacheEvent> events, TimePoint now);
  // Nothing that was known is true any more. Of the same process, the block size still is.
  enum class Process : uint8_t { kSame, kPerhapsAnother };
  void Reset(TimePoint now, Process process = Process::kPerhapsAnother);
  // Now and then: what waits too long is given up, and what must not be indexed any more.
  void Tick(TimePoint now);

  FeedStatus& status() { return *status_; }
  // A batch came that is so old by the engine's clock; how much of that is lag, if the rank can be
  // chosen.
  std::optional<Duration> Stamped(Duration offset, TimePoint now);
  // Hears how long blocks took to be told of, from the first byte of the answer.
  void WatchLag(Histogram& lag) { lag_ = &lag; }

 private:
  void Apply(const StoredEvent& event, TimePoint now);
  void SetShape(const BlockShape& shape, uint32_t group);
  bool HasChangedTo(const BlockShape& shape, uint32_t group);
  bool MayIndex(TimePoint now);
  bool OpenHoldings();
  void SetRank(uint32_t rank, TimePoint now);
  uint32_t rank() const { return status_->dp_rank.load(std::memory_order_relaxed); }
  void CloseHoldings();
  void CopyCounts();
  void Compare(const StoredEvent& event, TimePoint now);
  void FlushRemovals();

  CacheIndex& index_;
  Epochs::Seat& seat_;
  const std::shared_ptr<Worker> worker_;  // whose rank can be chosen as long as it is followed
  const std::shared_ptr<FeedStatus> status_;
  BlockSizes* const sizes_;
  Rank* seen_ = nullptr;  // the rank as requests see it; null: it cannot be chosen
  Histogram* lag_ = nullptr;
  static constexpr uint32_t kOthersInARow = 16;
  std::optional<BlockShape> shape_;         // of the events since the rank was empty
  uint32_t shape_group_ = 0;                // of the event that said so
  uint32_t others_in_a_row_ = 0;            // events of that group with another shape
  std::unique_ptr<RankHoldings> holdings_;  // null before the first stored event
  // What the agreement said, and when.
  struct Verdict {
    bool known = false;
    bool may_index = true;
    uint64_t version = 0;
  } verdict_;
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
