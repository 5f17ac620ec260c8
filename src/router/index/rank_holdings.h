// Which blocks does one rank hold? The only writer of the rank's entries in the index.
//
// Counting  The engine may store a block several times and removes each copy; a block is held until
//           its last copy is removed. A block in the middle may be removed before those after it:
//           they stay known, but no lookup reaches them until it is stored again.
// Unknown   A run whose parent is unknown waits in an OrphanShed. A run that names only some of its
//           blocks does not show which: each is placed by its hash, or waits in UnplacedBlocks.
//           Removals of unknown blocks are counted and change nothing.
// Memory    When the limit of the index is reached, the rank forgets blocks without children, so
//           that the remaining blocks are still prefixes. It then reports less than the engine
//           holds, never more.
// Threads   One writer at a time. counters(), rank() and shape() from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "engine/rank_label.h"
#include "router/index/bank.h"
#include "router/index/block_ledger.h"
#include "router/index/lost_blocks.h"
#include "router/index/orphan_shed.h"
#include "router/index/stored_run.h"
#include "router/index/unplaced_blocks.h"

namespace fathom {

class PrefixIndex;

// A count since the rank was added. Written by one thread, read by any: relaxed, pairs with
// nothing.
class IndexCount {
 public:
  void Add(uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void Set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct HoldingCounters {
  IndexCount stored;           // blocks, copies included
  IndexCount removed;          // blocks, copies included
  IndexCount clears;           // times that all blocks were removed at once
  IndexCount copies;           // stored blocks that were already held
  IndexCount unknown_removed;  // removals of unknown blocks
  IndexCount parked;           // blocks whose place was unknown
  IndexCount adopted;          // of these, placed when another event showed it
  IndexCount lost_orphans;     // of these, dropped
  IndexCount conflicts;        // hashes stored again with other content
  IndexCount evicted;          // blocks forgotten at the memory limit
  IndexCount refused;          // blocks not stored at the memory limit
  IndexCount unsupported;      // blocks of unsupported groups

  // Current values.
  IndexCount held;     // blocks, in all lanes
  IndexCount ghosts;   // kv_router_feed_removed_predecessors
  IndexCount orphans;  // blocks parked
  IndexCount lanes;
  IndexCount unsupported_groups;
};

class RankHoldings {
 public:
  static constexpr size_t kMostLanes = 16;

  ~RankHoldings();
  RankHoldings(const RankHoldings&) = delete;
  RankHoldings& operator=(const RankHoldings&) = delete;

  void Store(const StoredRun& run, TimePoint now);
  void Remove(std::span<const uint64_t> hashes, CachePart part);
  // A block changes its tier. No effect if the block is unknown in `from`.
  void Move(uint64_t hash, CachePart from, Tier to);
  // Removes everything: all groups, all tiers and the parked runs.
  void Clear();
  void ExpireOrphans(TimePoint now);

  const BlockShape& shape() const { return shape_; }
  uint32_t rank() const { return rank_; }
  const HoldingCounters& counters() const { return counters_; }
  // The key of a block by the engine's hash; nullopt: the block is unknown.
  std::optional<uint64_t> KeyOf(uint64_t hash) const;

 private:
  friend class PrefixIndex;
  friend class HoldingExport;
  friend class HoldingImport;

  struct Lane {
    Lane(MemoryMeter& meter, uint64_t secret) : ledger(meter, secret) {}
    CachePart part;
    GroupKind kind = GroupKind::kFull;
    uint32_t window = 0;
    Lanes bit = 0;
    bool irregular = false;  // has blocks whose parent cannot be known
    BlockLedger ledger;
    // Whether gaps are tracked: window groups and slower tiers are always searched block by block.
    bool tracked() const { return kind == GroupKind::kFull && part.tier == Tier::kDevice; }
  };
  // The block that a run continues from.
  struct Origin {
    bool found = false;
    uint64_t key = 0;
    uint16_t name_space = 0;
  };

  RankHoldings(PrefixIndex& index, uint32_t rank, RankLabel label, Epochs::Seat& seat);

  // Everything below runs inside a pin.
  bool Place(const StoredRun& run, TimePoint now);
  void PlaceSome(const StoredRun& run, TimePoint now);
  void PlaceByHash(Lane& lane, uint64_t hash, uint32_t copies);
  void PlaceWaiting(std::span<const uint64_t> hashes, TimePoint now);
  void PlaceUnplaced(uint64_t hash);
  size_t BlocksOf(const StoredRun& run) const;
  void RemoveAll(std::span<const uint64_t> hashes, CachePart part);
  Origin OriginOf(uint64_t hash, const Lane* first) const;
  std::optional<Origin> OriginOf(const StoredRun& run);
  size_t MakeKeys(const StoredRun& run, const Origin& origin);
  std::optional<uint16_t> NameSpaceOf(uint64_t seed);
  void CollectNamespaces();
  size_t Enter(Lane& lane, const StoredRun& run, const Origin& origin);
  bool EnterBlock(Lane& lane, uint64_t hash, uint64_t key, BlockLedger::Node& before,
                  uint16_t name_space);
  bool EnterKnown(Lane& lane, BlockLedger::Node known, uint64_t key, BlockLedger::Node& before);
  BlockLedger::Node NodeBefore(Lane& lane, const StoredRun& run, const Origin& origin);
  void RemoveSome(Lane& lane, std::span<const uint64_t> hashes, bool backwards);
  void RemoveBlock(Lane& lane, uint64_t hash, BlockLedger::Node node);
  size_t ForgetLeaves(size_t blocks);
  void ForgetNamespaces();
  void Lose(const Lane& lane, uint64_t key, LostHow how) const;

  Lane* Find(CachePart part) const;
  bool RoomForGroup(uint32_t group) const;
  Lane* FindOrMake(const StoredRun& run);
  void NoteUnsupported(const StoredRun& run);
  // Announce() sets or clears the lane's bit in Bank::plain. Clear it before a gap is made: lookups
  // rely on that order.
  void Announce(const Lane& lane, bool unbroken);
  void Settle(const Lane& lane);
  void UpdateCounts();

  PrefixIndex& index_;
  Epochs::Seat& seat_;
  const BlockShape shape_;
  const uint32_t rank_;
  const uint32_t owner_;  // as LostBlocks::OwnerOf() encodes it
  Bank* bank_ = nullptr;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<uint32_t> unsupported_groups_;
  OrphanShed orphans_;
  UnplacedBlocks unplaced_;
  std::vector<uint64_t> seeds_;                         // by namespace
  std::unordered_map<uint64_t, uint16_t> name_spaces_;  // by seed
  std::vector<uint16_t> free_name_spaces_;
  std::optional<uint64_t> collected_at_;  // counters_.removed at the last collection
  std::vector<uint64_t> keys_;            // of the current run
  HoldingCounters counters_;
};

}  // namespace fathom
