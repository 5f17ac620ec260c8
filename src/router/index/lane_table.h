// Which lanes hold the block with this key?
//
// A lane is one bit: a rank's blocks of one cache group in one tier. A table has 32 lanes; larger
// fleets use several tables.
//
// Layout   64 segments, each an array of buckets of one cache line: a header, five sets of lanes
//          and five keys. An entry is in its home bucket or, when that is full, in one of the next
//          few. Each bucket counts the entries that overflowed past it, so a search can stop early
//          and an entry can be erased without a tombstone. Entries never move inside an array. A
//          segment grows by a quarter and shrinks automatically, so the load stays between 0.7 and
//          0.86.
// Readers  Find() inside an Epochs::Pin. It never waits: a bucket is readable at any moment, also
//          while a writer has it locked or its segment is being replaced. Key and lanes are two
//          separate loads; the bucket's erasure count shows whether the entry was reused in
//          between.
// Writers  Set() and Clear() from any thread, inside a pin. One bit of a bucket's header is its
//          lock, and the header changes only under that lock. Locks are taken in ascending order,
//          home bucket first, so writers cannot deadlock.
// Memory   12.8 bytes per place, 18.3 per entry on average. Metered.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "router/index/epochs.h"
#include "router/index/memory_meter.h"

namespace fathom {

using Lanes = uint32_t;

class LaneTable {
 public:
  static constexpr size_t kLanes = 32;
  static constexpr size_t kSegments = 64;

  // `secret` determines the home buckets, so that clients cannot make keys collide on purpose.
  LaneTable(Epochs& epochs, MemoryMeter& meter, uint64_t secret);
  ~LaneTable();
  LaneTable(const LaneTable&) = delete;
  LaneTable& operator=(const LaneTable&) = delete;

  Lanes Find(uint64_t key) const;
  void Prefetch(uint64_t key) const {
    const uint64_t mixed = Mixed(Stored(key));
    const Bucket* home = HomeOf(mixed, *SegmentOf(mixed).array.load(std::memory_order_seq_cst));
    __builtin_prefetch(home, 1);
    __builtin_prefetch(home + 1, 1);  // also searched when the home bucket is full
  }

  // `lanes` must not be 0. False: the memory limit is reached and nothing has changed.
  bool Set(uint64_t key, Lanes lanes);
  void Clear(uint64_t key, Lanes lanes);

  // Keys with at least one lane in one segment, which is scanned. Inside a pin.
  size_t CountEntries(size_t segment) const;

 private:
  static constexpr size_t kEntries = 5;
  static constexpr size_t kReach = 12;  // an entry is at most this many buckets after its home

  // The header: a lock bit, a flag and two counts.
  static constexpr uint32_t kLocked = 1;
  static constexpr uint32_t kMoved = 2;  // permanent: the segment's next array has the content
  static constexpr uint32_t kPassed = 1u << 2;    // entries that overflowed past this bucket
  static constexpr uint32_t kErasure = 1u << 12;  // wraps; no Find() lasts that long
  static uint32_t PassedIn(uint32_t header) { return header & (kErasure - kPassed); }

  struct alignas(64) Bucket {
    std::atomic<uint32_t> header{0};
    std::array<std::atomic<Lanes>, kEntries> lanes{};
    std::array<std::atomic<uint64_t>, kEntries> keys{};  // 0: free. Stored (release) after lanes
  };
  static_assert(sizeof(Bucket) == 64);
  // The buckets follow the header in the same allocation.
  struct alignas(64) Array {
    uint32_t homes;  // buckets that can be a home; kReach more follow
    size_t size() const { return homes + kReach; }
    size_t bytes() const { return sizeof(Array) + size() * sizeof(Bucket); }
    Bucket* buckets() { return reinterpret_cast<Bucket*>(this + 1); }
  };
  struct alignas(64) Segment {
    std::atomic<Array*> array{nullptr};
    // Entries, counted for one key in kSampled: precise enough for the load, with little
    // contention.
    alignas(64) std::atomic<int32_t> sampled{0};
    std::atomic<bool> resizing{false};
  };
  static constexpr uint64_t kSampled = 8;

  // A bit for each entry with this key; 0 finds the free ones. All are compared, because one
  // mispredicted branch costs more than five comparisons.
  static uint32_t Matches(const Bucket& bucket, uint64_t key, std::memory_order order) {
    uint32_t matches = 0;
    for (uint32_t i = 0; i < kEntries; ++i) {
      matches |= static_cast<uint32_t>(bucket.keys[i].load(order) == key) << i;
    }
    return matches;
  }

  struct Spot {  // of a key, in one array
    Bucket* bucket = nullptr;
    size_t entry = 0;
  };

  static uint64_t Stored(uint64_t key) { return key == 0 ? 1 : key; }
  static bool Counts(uint64_t key) { return (key >> 32) % kSampled == 0; }
  uint64_t Mixed(uint64_t key) const { return key * secret_; }
  Segment& SegmentOf(uint64_t mixed) const { return segments_[mixed >> 58]; }
  static Bucket* HomeOf(uint64_t mixed, Array& array) {
    return array.buckets() + ((((mixed >> 26) & 0xffffffffu) * array.homes) >> 32);
  }

  static bool Lock(Bucket& bucket);
  static void Unlock(Bucket& bucket, uint32_t add = 0);
  static Bucket& LockHome(Segment& segment, uint64_t mixed, Array*& array);
  static Spot FindIn(Bucket* home, uint64_t key);
  static void Fill(Bucket& bucket, size_t entry, uint64_t key, Lanes lanes);
  static bool Insert(Bucket* home, uint64_t key, Lanes lanes);
  static bool InsertBehind(Bucket* home, uint64_t key, Lanes lanes);
  static void EraseBehind(Bucket* home, const Spot& spot);

  Array* MakeArray(uint32_t homes);
  static void FreeArray(MemoryMeter& meter, Array* array);
  static uint64_t Estimate(const Segment& segment);
  bool GrowIfCrowded(Segment& segment, const Array& array, bool forced);
  void ShrinkIfSparse(Segment& segment, const Array& array);
  void Resize(Segment& segment, uint32_t homes);
  bool CopyBucket(Bucket& from, Array& to) const;

  Epochs& epochs_;
  MemoryMeter& meter_;
  const uint64_t secret_;  // odd
  mutable std::array<Segment, kSegments> segments_;
};

}  // namespace fathom
