// What one rank holds: the one writer of its entries in the index.
//
// Counting  The engine may store a block several times and removes each copy; a block is held until
//           its last copy has left. A block of the middle may leave before those after it: they
//           stay known, but no lookup reaches them until it returns.
// Unknown   A run whose predecessor is unknown waits in an OrphanShed. Removals of unknown blocks
//           are counted and change nothing.
// Memory    When the limit of the index is reached, the rank forgets blocks that nothing follows,
//           so that what remains are prefixes. It then claims less than the engine holds, never
//           more.
// Threads   One writer at a time. counters() and the numbers beside it from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "index/bank.h"
#include "index/block_ledger.h"
#include "index/lost_blocks.h"
#include "index/orphan_shed.h"
#include "index/stored_run.h"

namespace fathom {

class PrefixIndex;
struct RankLabel;

// Since the rank came. Written by one thread, read by any: plain counts that order nothing else.
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
  IndexCount clears;           // times that everything left
  IndexCount copies;           // stored blocks that were held already
  IndexCount unknown_removed;  // removals of blocks that are not known
  IndexCount parked;           // blocks whose predecessor was unknown
  IndexCount adopted;          // of these, found their place later
  IndexCount lost_orphans;     // of these, given up
  IndexCount conflicts;        // hashes that came with another content than before
  IndexCount evicted;          // blocks forgotten because memory was short
  IndexCount refused;          // blocks not taken because memory was short
  IndexCount unsupported;      // blocks of groups without a rule

  // Now.
  IndexCount held;     // blocks, of all lanes
  IndexCount ghosts;   // blocks that left before those after them
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
  // A block changes its tier. One that is not known there changes nothing.
  void Move(uint64_t hash, CachePart from, Tier to);
  // Everything: all groups, all tiers, what is parked.
  void Clear();
  void ExpireOrphans(TimePoint now);

  const BlockShape& shape() const { return shape_; }
  uint32_t rank() const { return rank_; }
  const HoldingCounters& counters() const { return counters_; }
  // The key of a block by the engine's name; nothing: it is not known.
  std::optional<uint64_t> KeyOf(uint64_t hash) const;

 private:
  friend class PrefixIndex;

  struct Lane {
    Lane(MemoryMeter& meter, uint64_t secret) : ledger(meter, secret) {}
    CachePart part;
    GroupKind kind = GroupKind::kFull;
    uint32_t window = 0;
    Lanes bit = 0;
    bool irregular = false;  // has blocks whose predecessor it cannot know
    BlockLedger ledger;
    // Whether gaps matter: windows and lower tiers are walked anyway.
    bool tracked() const { return kind == GroupKind::kFull && part.tier == Tier::kDevice; }
  };
  // Where a run continues.
  struct Origin {
    bool found = false;
    uint64_t key = 0;
    uint16_t name_space = 0;
  };

  RankHoldings(PrefixIndex& index, uint32_t rank, RankLabel label, Epochs::Seat& seat);

  // Everything below runs inside a pin.
  bool Place(const StoredRun& run, TimePoint now);
  void AdoptChildren(std::span<const uint64_t> hashes, TimePoint now);
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
  BlockLedger::Node NodeBefore(Lane& lane, const StoredRun& run, const Origin& origin,
                               size_t unnamed);
  void RemoveSome(Lane& lane, std::span<const uint64_t> hashes, bool backwards);
  void RemoveBlock(Lane& lane, uint64_t hash, BlockLedger::Node node);
  size_t ForgetLeaves(size_t blocks);
  void ForgetNamespaces();
  void Lose(const Lane& lane, uint64_t key, LostHow how) const;

  Lane* Find(CachePart part) const;
  bool RoomForGroup(uint32_t group) const;
  Lane* FindOrMake(const StoredRun& run);
  void NoteUnsupported(const StoredRun& run);
  // The order matters to lookups: a gap is announced before it is made.
  void Announce(const Lane& lane, bool unbroken);
  void Settle(const Lane& lane);
  void UpdateCounts();

  PrefixIndex& index_;
  Epochs::Seat& seat_;
  const BlockShape shape_;
  const uint32_t rank_;
  const uint32_t owner_;  // as lost blocks are told apart
  Bank* bank_ = nullptr;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<uint32_t> unsupported_groups_;
  OrphanShed orphans_;
  std::vector<uint64_t> seeds_;                         // by namespace
  std::unordered_map<uint64_t, uint16_t> name_spaces_;  // by seed
  std::vector<uint16_t> free_name_spaces_;
  std::optional<uint64_t> collected_at_;  // blocks removed when namespaces were last collected
  std::vector<uint64_t> keys_;            // of the run at hand
  HoldingCounters counters_;
};

}  // namespace fathom
