// Which blocks were computed once and are not known to be held by any rank now?
//
// The index has only the held blocks. To explain a cache miss, the router must also remember former
// blocks: those that were evicted, those of ranks that were cleared, and those that were sent to a
// rank but never reported by an event. The keys are those of the index, so that a prompt can be
// followed here beyond its held blocks.
//
// Staleness  A block that has returned to the index is not removed here: look here only beyond the
//            depth that the index holds.
// Precision  A table of fixed size: when a bucket is full, its oldest block is replaced. Two
//            threads that write the same place may mix up which rank held a block, never whether it
//            was held.
// Threads    Any thread, without locks. All atomics are relaxed and pair with nothing.
// Memory     Fixed; pages that were never used are not allocated.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.h"
#include "text/tokens/block_hash.h"

namespace fathom {

enum class LostHow : uint8_t {
  kSent,       // computed for a request, whether or not an event reported it
  kEvicted,    // the engine removed it
  kGone,       // the rank was cleared or removed
  kForgotten,  // the index had no memory for it
};

class LostBlocks {
 public:
  explicit LostBlocks(size_t bytes);
  ~LostBlocks();
  LostBlocks(const LostBlocks&) = delete;
  LostBlocks& operator=(const LostBlocks&) = delete;

  // Identifies the holder in the 32 bits that are stored.
  static uint32_t OwnerOf(uint64_t worker, uint32_t dp_rank);

  struct Loss {
    LostHow how = LostHow::kSent;
    uint32_t owner = 0;
    uint32_t second = 0;  // time of the loss, from SetNow()
  };
  void Add(uint64_t key, LostHow how, uint32_t owner);
  void Add(std::span<const uint64_t> keys, LostHow how, uint32_t owner);
  std::optional<Loss> Find(uint64_t key) const;

  // Coarse time, for callers of Add() that have no clock.
  void SetNow(TimePoint now) { now_.store(SecondOf(now), std::memory_order_relaxed); }
  static uint32_t SecondOf(TimePoint at) {
    return static_cast<uint32_t>(
               std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count()) &
           kSecondMask;
  }

  // The shapes of the blocks that may be here.
  static constexpr size_t kMostShapes = 8;
  void AddShape(BlockShape shape);
  // Used slots come first; unused ones have size 0.
  BlockShape shape(size_t i) const { return Unpack(shapes_[i].load(std::memory_order_relaxed)); }

 private:
  static constexpr uint32_t kSecondMask = (1u << 30) - 1;
  static constexpr size_t kPlaces = 4;
  struct Place {
    std::atomic<uint64_t> key;   // 0: free
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
