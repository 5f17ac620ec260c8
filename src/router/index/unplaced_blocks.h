// Which stored blocks wait to be named by an event that shows their place in a prompt?
//
// An event may name fewer blocks than its tokens fill: engines leave out blocks of a sliding window
// anywhere in the run. Which ones is not in the event, so a block is placed by its hash, as soon as
// another event of the rank names the same hash with its place; usually that of the full-attention
// group, in the same batch. Until then the block waits here and is claimed by nothing. It is
// dropped after kPatience, or when newer blocks need the room.
//
// Threads  One.
// Memory   At most kMostBlocks, metered.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "router/index/memory_meter.h"
#include "router/index/secret_hash.h"
#include "router/index/stored_run.h"

namespace fathom {

class UnplacedBlocks {
 public:
  static constexpr size_t kMostBlocks = 8192;
  static constexpr Duration kPatience = std::chrono::seconds(120);

  struct Block {
    CachePart part;
    uint32_t copies = 1;
    uint64_t number = 0;  // of its turn
  };

  UnplacedBlocks(MemoryMeter& meter, uint64_t secret)
      : meter_(meter), blocks_(0, SecretHash{secret}) {}
  ~UnplacedBlocks() { Clear(); }
  UnplacedBlocks(const UnplacedBlocks&) = delete;
  UnplacedBlocks& operator=(const UnplacedBlocks&) = delete;

  bool empty() const { return blocks_.empty(); }
  size_t blocks() const { return blocks_.size(); }

  // One copy of a block. Returns how many blocks were dropped: an older one to make room, or this
  // one if it does not fit. The caller bounds the number of parts.
  size_t Park(uint64_t hash, const CachePart& part, TimePoint now);
  bool Contains(uint64_t hash) const { return blocks_.contains(hash); }
  // Takes the block out, of one part; nullopt: none waits.
  std::optional<Block> TakeOut(uint64_t hash);
  // The engine removed a copy. False if none waits.
  bool Remove(uint64_t hash, const CachePart& part);
  // Drops blocks older than kPatience and returns their number.
  size_t Expire(TimePoint now);
  void Clear();

 private:
  struct Turn {  // when a block was parked; it may have been taken out since
    uint64_t hash;
    uint64_t number;
    TimePoint since;
  };
  using Blocks = std::unordered_multimap<uint64_t, Block, SecretHash>;  // by the engine's hash
  static constexpr size_t kBytes = 128;  // approximate, of a block and its turn

  void Erase(Blocks::iterator block);
  Blocks::iterator Find(uint64_t hash, const CachePart& part);
  Blocks::iterator Find(const Turn& turn);
  size_t DropOldest();

  MemoryMeter& meter_;
  Blocks blocks_;
  std::deque<Turn> oldest_first_;
  uint64_t next_number_ = 0;
};

}  // namespace fathom
