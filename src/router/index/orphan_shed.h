// Which stored blocks wait for their parent block to become known?
//
// A run names its parent block. When the parent is unknown (the router joined late, or forgot it),
// the run is parked here and never attached to the root, where it would claim a prefix that the
// rank does not hold. It is taken out when the parent arrives. It is dropped after kPatience, or
// when newer runs need the room.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "router/index/memory_meter.h"
#include "router/index/secret_hash.h"
#include "router/index/stored_run.h"

namespace fathom {

class OrphanShed {
 public:
  static constexpr size_t kMostBlocks = 8192;
  static constexpr Duration kPatience = std::chrono::seconds(120);

  // A run with its own copy of all data, and in `left` the blocks removed while it was parked.
  struct Orphan {
    uint64_t parent;
    std::vector<uint64_t> hashes;
    std::vector<TokenId> tokens;
    std::vector<uint64_t> locals;
    std::vector<ExtraKey> extra;
    CachePart part;
    GroupKind kind;
    uint32_t window;
    std::vector<uint64_t> left;
    TimePoint since;

    StoredRun Run() const;
    size_t bytes() const;
  };

  OrphanShed(MemoryMeter& meter, uint64_t secret)
      : meter_(meter), waiting_for_(0, SecretHash{secret}), containing_(0, SecretHash{secret}) {}
  ~OrphanShed() { Clear(); }
  OrphanShed(const OrphanShed&) = delete;
  OrphanShed& operator=(const OrphanShed&) = delete;

  bool empty() const { return orphans_.empty(); }
  size_t blocks() const { return blocks_; }

  // Returns how many blocks were dropped: older ones to make room, or the whole run if it does not
  // fit.
  size_t Park(const StoredRun& run, TimePoint now);
  // Whether a run waits for this block.
  bool Awaits(uint64_t parent) const { return waiting_for_.contains(parent); }
  // Takes out a run that waits for this block; nullopt: none waits.
  std::optional<Orphan> Adopt(uint64_t parent);
  // The engine removed the block. False if it is not parked.
  bool Remove(uint64_t hash, const CachePart& part);
  // Drops runs older than kPatience and returns their number of blocks.
  size_t Expire(TimePoint now);
  void Clear();

 private:
  using ByHash = std::unordered_multimap<uint64_t, uint64_t, SecretHash>;  // to ids
  void Forget(ByHash& map, uint64_t key, uint64_t id);
  Orphan TakeOut(uint64_t id);
  size_t DropOldest();

  MemoryMeter& meter_;
  uint64_t next_id_ = 0;
  std::unordered_map<uint64_t, Orphan> orphans_;  // by id
  ByHash waiting_for_;                            // by the parent's hash
  ByHash containing_;                             // by the blocks' hashes
  std::deque<uint64_t> oldest_first_;             // ids; some are no longer in orphans_
  size_t blocks_ = 0;
};

}  // namespace fathom
