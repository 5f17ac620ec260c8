// Which lanes hold the block with this key?
//
// A lane is one bit: a rank's blocks of one cache group in one tier. The table has room for 64
// lanes; larger fleets use several tables.
//
// Layout   64 segments, each an array of buckets of two cache lines: a header and seven entries
//          {key, lanes}. An entry lies in its home bucket or, when that is full, in one of the next
//          few; each bucket counts the entries that passed it by, so a search knows when to stop
//          and an entry can be taken out without a trace. Entries never move inside an array. A
//          segment grows by a quarter and shrinks by itself, so the load stays between 0.7 and 0.9.
// Readers  Find() inside an Epochs::Pin. It never waits: a bucket is readable at any moment, also
//          while a writer holds it or its segment is being replaced. Pairs (key, lanes) are read
//          apart; a bucket's count of erasures tells whether the entry was reused in between.
// Writers  Set() and Clear() from any thread, inside a pin. A bucket is locked by one bit of its
//          header, home bucket first, then rising, so writers cannot wait for each other in a
//          circle.
// Memory   18.3 bytes per entry and load, 23 on average. Metered.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "index/epochs.h"
#include "index/memory_meter.h"

namespace fathom {

class LaneTable {
 public:
  static constexpr size_t kLanes = 64;

  // `secret` decides where keys go, so that nobody outside can crowd one place.
  LaneTable(Epochs& epochs, MemoryMeter& meter, uint64_t secret);
  ~LaneTable();
  LaneTable(const LaneTable&) = delete;
  LaneTable& operator=(const LaneTable&) = delete;

  uint64_t Find(uint64_t key) const;
  void Prefetch(uint64_t key) const;

  // `lanes` must not be 0. False when memory does not allow it; then nothing has changed.
  bool Set(uint64_t key, uint64_t lanes);
  void Clear(uint64_t key, uint64_t lanes);

  // Keys with at least one lane. Looks at everything.
  size_t CountEntries() const;

 private:
  struct Entry {
    std::atomic<uint64_t> key{0};  // 0: nothing here. Stored (release) after lanes
    std::atomic<uint64_t> lanes{0};
  };
  static constexpr size_t kEntries = 7;
  static constexpr size_t kReach = 8;  // buckets that an entry may lie behind its home

  // Two bits and a count of erasures in `state`.
  static constexpr uint32_t kLocked = 1;
  static constexpr uint32_t kMoved = 2;  // for good: its content stands in the segment's next array
  static constexpr uint32_t kErasure = 4;

  struct alignas(128) Bucket {
    std::atomic<uint32_t> state{0};
    std::atomic<uint32_t> passed{0};  // entries that belong here or before and lie behind
    std::array<Entry, kEntries> entries;
  };
  struct Array {
    uint32_t homes;  // buckets that can be a home; kReach more follow
    std::unique_ptr<Bucket[]> buckets;
    size_t bytes() const { return sizeof(Array) + (homes + kReach) * sizeof(Bucket); }
  };
  static constexpr size_t kSegments = 64;
  struct alignas(64) Segment {
    std::atomic<Array*> array{nullptr};
    // Entries, counted for one key in kSampled: enough to know the load, and writers rarely meet.
    alignas(64) std::atomic<int32_t> sampled{0};
    std::atomic<bool> resizing{false};
  };
  static constexpr uint64_t kSampled = 8;

  struct Spot {  // of a key, in one array
    Bucket* bucket;
    Entry* entry;
  };
  enum class Outcome : uint8_t { kDone, kCrowded };

  static uint64_t Stored(uint64_t key) { return key == 0 ? 1 : key; }
  static bool Counts(uint64_t key) { return (key >> 32) % kSampled == 0; }
  uint64_t Mixed(uint64_t key) const { return key * secret_; }
  Segment& SegmentOf(uint64_t mixed) const { return segments_[mixed >> 58]; }
  static size_t HomeOf(uint64_t mixed, const Array& array) {
    return (((mixed >> 26) & 0xffffffffu) * array.homes) >> 32;
  }

  static bool Lock(Bucket& bucket);
  static void Unlock(Bucket& bucket, uint32_t add = 0);
  Bucket& LockHome(Segment& segment, uint64_t mixed, Array*& array) const;
  static Spot FindIn(Bucket* home, uint64_t key);
  static Entry* FreeEntry(Bucket& bucket);
  static Outcome Insert(Bucket* home, uint64_t key, uint64_t lanes);
  static void Erase(Bucket* home, const Spot& spot);

  Array* MakeArray(uint32_t homes);
  static void FreeArray(MemoryMeter& meter, Array* array);
  uint64_t Estimate(const Segment& segment) const;
  bool GrowIfCrowded(Segment& segment, const Array& array, bool forced);
  void ShrinkIfSparse(Segment& segment, const Array& array);
  void Resize(Segment& segment, uint32_t homes);
  static bool CopyBucket(Bucket& from, Array& to, const LaneTable& table);

  Epochs& epochs_;
  MemoryMeter& meter_;
  const uint64_t secret_;  // odd
  mutable std::array<Segment, kSegments> segments_;
};

}  // namespace fathom
