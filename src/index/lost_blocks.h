// Which blocks were computed once, and are not known to be held by anybody now?
//
// The index knows what is there. To say why something is not, one has to remember what was: blocks
// that were evicted, blocks of ranks that were emptied, blocks that were sent to a rank and of
// which no event has told. Keyed as in the index, so that a prompt that continues beyond what is
// held can be followed here.
//
// Staleness  A block that has come back into the index is not taken out: look here only beyond what
//            the index holds.
// Precision  A table of fixed size: when a place is full, the oldest goes. Two threads that write
//            the same place may mix up who held a block, never whether it was held.
// Threads    Any, without locks. All atomics are relaxed and pair with nothing.
// Memory     Fixed; what was never used is not touched.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.h"
#include "tokens/block_hash.h"

namespace fathom {

enum class LostHow : uint8_t {
  kSent,       // computed for a request; no event needed to have told of it
  kEvicted,    // the engine removed it
  kGone,       // everything that the rank held was lost or forgotten
  kForgotten,  // the index had no room for it
};

class LostBlocks {
 public:
  explicit LostBlocks(size_t bytes);
  ~LostBlocks();
  LostBlocks(const LostBlocks&) = delete;
  LostBlocks& operator=(const LostBlocks&) = delete;

  // Who had it, in as many bits as are kept.
  static uint32_t OwnerOf(uint64_t worker, uint32_t dp_rank);

  struct Loss {
    LostHow how = LostHow::kSent;
    uint32_t owner = 0;
    uint32_t second = 0;  // when, by SetNow()
  };
  void Add(uint64_t key, LostHow how, uint32_t owner);
  void Add(std::span<const uint64_t> keys, LostHow how, uint32_t owner);
  std::optional<Loss> Find(uint64_t key) const;

  // Coarse time, for those who have no clock at hand.
  void SetNow(TimePoint now) { now_.store(SecondOf(now), std::memory_order_relaxed); }
  static uint32_t SecondOf(TimePoint at) {
    return static_cast<uint32_t>(
               std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count()) &
           kSecondMask;
  }

  // Blocks of these shapes may be here.
  static constexpr size_t kMostShapes = 8;
  void AddShape(BlockShape shape);
  // Those that are there come first; the others have the size 0.
  BlockShape shape(size_t i) const { return Unpack(shapes_[i].load(std::memory_order_relaxed)); }

 private:
  static constexpr uint32_t kSecondMask = (1u << 30) - 1;
  static constexpr size_t kPlaces = 4;
  struct Place {
    std::atomic<uint64_t> key;   // 0: nothing
    std::atomic<uint64_t> loss;  // owner, how, second
  };
  struct alignas(64) Bucket {
    std::array<Place, kPlaces> places;
  };
  static constexpr uint32_t kLargestSize = 1u << 20;

  static uint32_t Pack(BlockShape shape) { return shape.size << 1 | (shape.pairs ? 1 : 0); }
  static BlockShape Unpack(uint32_t packed) { return {packed >> 1, (packed & 1) != 0}; }
  Bucket& BucketOf(uint64_t key) const;

  const size_t count_;
  Bucket* const buckets_;
  std::atomic<uint32_t> now_{0};
  std::array<std::atomic<uint32_t>, kMostShapes> shapes_{};
};

}  // namespace fathom
