// Blocks whose place in their prompt is not known yet.
//
// A run names the block before it. When that block is unknown (we joined late, or forgot it), the
// run is parked here, never attached to the root: it would claim a prefix that nobody holds. It is
// taken out again when the block turns up, and thrown away when it has waited too long or others
// need the room.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "index/memory_meter.h"
#include "index/stored_run.h"

namespace fathom {

class OrphanShed {
 public:
  static constexpr size_t kMostBlocks = 8192;
  static constexpr Duration kPatience = std::chrono::seconds(120);

  // A run with its own copy of everything, and those of its blocks that have left meanwhile.
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

  explicit OrphanShed(MemoryMeter& meter) : meter_(meter) {}
  ~OrphanShed() { Clear(); }
  OrphanShed(const OrphanShed&) = delete;
  OrphanShed& operator=(const OrphanShed&) = delete;

  bool empty() const { return orphans_.empty(); }
  size_t blocks() const { return blocks_; }

  // Returns how many blocks had to go to make room, or all of the run's if it is too large.
  size_t Park(const StoredRun& run, TimePoint now);
  // A run that waits for this block, if there is one.
  std::optional<Orphan> Adopt(uint64_t parent);
  // The block has left. False if it is not here.
  bool Remove(uint64_t hash, const CachePart& part);
  // Returns how many blocks have waited too long and are gone.
  size_t Expire(TimePoint now);
  void Clear();

 private:
  void Forget(std::unordered_multimap<uint64_t, uint64_t>& map, uint64_t key, uint64_t id);
  Orphan TakeOut(uint64_t id);
  size_t DropOldest();

  MemoryMeter& meter_;
  uint64_t next_id_ = 0;
  std::unordered_map<uint64_t, Orphan> orphans_;             // by id
  std::unordered_multimap<uint64_t, uint64_t> waiting_for_;  // parent's hash -> id
  std::unordered_multimap<uint64_t, uint64_t> containing_;   // block's hash -> id
  std::deque<uint64_t> oldest_first_;                        // ids, some gone already
  size_t blocks_ = 0;
};

}  // namespace fathom
