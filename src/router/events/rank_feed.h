// Applies the events of one rank to the index.
//
// The first stored event opens the rank's holdings in the index, because it proves the block size.
// BlockSizes, the fleet's agreement, decides whether blocks of that size may be indexed. Events
// with a size that differs from the rank's are counted and left out, until kOthersInARow of them
// came in a row. Everything that clears the rank also forgets its size, because a restarted engine
// may have a new one.
//
// Threads  One, that of the seat.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "router/events/cache_event.h"
#include "router/fleet/block_sizes.h"
#include "router/fleet/feed_board.h"
#include "router/fleet/worker.h"
#include "router/index/cache_index.h"
#include "router/index/holding_snapshot.h"

namespace fathom {

class RankFeed {
 public:
  // Without `sizes`, blocks of every size are indexed.
  RankFeed(CacheIndex& index, Epochs::Seat& seat, std::shared_ptr<Worker> worker,
           std::shared_ptr<FeedStatus> status, BlockSizes* sizes = nullptr);
  ~RankFeed();
  RankFeed(const RankFeed&) = delete;
  RankFeed& operator=(const RankFeed&) = delete;

  void Apply(const EventBatch& batch, TimePoint now);
  void Apply(std::span<const CacheEvent> events, TimePoint now);
  // Everything known about the rank is invalid. With kSame, BlockSizes keeps its proven size.
  enum class Process : uint8_t { kSame, kPerhapsAnother };
  void Reset(TimePoint now, Process process = Process::kPerhapsAnother);
  // The rank leaves the index now, and nothing is applied any more. A stream that is stopped may
  // live on while it waits for a name server, longer than the index.
  void Close();
  // Call periodically: drops parked entries after their timeout, and holdings that lost their
  // agreement.
  void Tick(TimePoint now);

  // --- snapshots (router/index/holding_snapshot.h) ---

  // Memory that an export takes. 0: the rank holds nothing that could be told.
  size_t ExportBytes() const { return holdings_ ? HoldingExport::BytesFor(*holdings_) : 0; }
  // Precondition: ExportBytes() > 0. `mark` is the last batch that was applied. Everything that
  // changes the rank ends the export.
  void BeginExport(const StreamMark& mark);
  bool exporting() const { return export_.has_value(); }
  // The snapshot, once it is complete. Precondition: exporting().
  std::optional<std::string> ExportSome(size_t blocks);
  void EndExport() { export_.reset(); }
  // The rank shall hold what another router says it does. False: the snapshot is of another rank,
  // or blocks of its size may not be indexed. Precondition: nothing was applied since the last
  // Reset().
  // Blocks that are not on the device are added to `elsewhere`, which must outlive the import.
  bool BeginImport(std::shared_ptr<const HoldingSnapshot> snapshot, TimePoint now,
                   HoldingImport::Elsewhere* elsewhere = nullptr);
  bool importing() const { return import_.has_value(); }
  // False: the snapshot is malformed, and the rank must be reset. Precondition: importing(). Before
  // the end, nothing else may be applied.
  bool ImportSome(size_t blocks);

  // What is applied next comes from a replay, or from the live stream again: only live events are
  // the engine's present traffic.
  void SetReplaying(bool replaying) { replaying_ = replaying; }
  // A batch was published at that time. Live batches are taken to be published as they are applied.
  void Published(TimePoint when);

  FeedStatus& status() { return *status_; }
  const FeedStatus& status() const { return *status_; }
  // Notes the age of a batch by the engine's clock. Returns the part of it that is lag, if the rank
  // is routable.
  std::optional<Duration> Stamped(Duration offset, TimePoint now);
  // Receives the time from the first byte of an answer to the event of its blocks.
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
  void CountLive();
  void Compare(const StoredEvent& event, TimePoint now);
  void FlushRemovals();

  CacheIndex& index_;
  Epochs::Seat& seat_;
  const std::shared_ptr<Worker> worker_;  // its rank is routable while this feed exists
  const std::shared_ptr<FeedStatus> status_;
  BlockSizes* const sizes_;
  Rank* seen_ = nullptr;  // the rank that requests see; null: not routable
  Histogram* lag_ = nullptr;
  bool closed_ = false;
  bool replaying_ = false;
  uint64_t counted_stored_ = 0;   // at the last CountLive()
  uint64_t counted_removed_ = 0;  // likewise
  static constexpr uint32_t kOthersInARow = 16;
  std::optional<BlockShape> shape_;         // of the events since the rank was last cleared
  uint32_t shape_group_ = 0;                // of the event that set `shape_`
  uint32_t others_in_a_row_ = 0;            // events of that group with a different shape
  std::unique_ptr<RankHoldings> holdings_;  // null before the first stored event
  // The last answer of BlockSizes, and the version that it belongs to.
  struct Verdict {
    bool known = false;
    bool may_index = true;
    uint64_t version = 0;
  } verdict_;
  // Engines remove block by block; the index is faster with many removals at once.
  std::vector<uint64_t> removals_;
  CachePart removals_from_;

  std::optional<HoldingExport> export_;
  std::shared_ptr<const HoldingSnapshot> imported_;
  std::optional<HoldingImport> import_;  // of it

  // Counts of earlier holdings, because counters must not decrease.
  struct Earlier {
    uint64_t stored = 0, removed = 0, copies = 0, unknown_removed = 0, parked = 0, adopted = 0,
             lost_orphans = 0, conflicts = 0, evicted = 0, refused = 0, unsupported = 0;
  } earlier_;
};

}  // namespace fathom
