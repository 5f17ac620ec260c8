#include "router/index/lane_table.h"

#include <algorithm>
#include <new>
#include <span>
#include <thread>
#include <type_traits>

#include "base/check.h"

namespace fathom {
namespace {

constexpr uint32_t kFewestHomes = 2;
// Load: entries as a fraction of the places in the home buckets.
constexpr double kFull = 0.78;
constexpr double kSparseShare = 0.45;
constexpr double kRoomyShare = 0.68;
// A segment that has to grow below this load indicates keys chosen to collide, or very unlikely
// chance.
constexpr double kSuspicious = 0.2;

// Waits for a lock that is held for some tens of nanoseconds, unless its holder was preempted.
class Patience {
 public:
  void Wait() {
    if (++spins_ % 64 == 0) {
      std::this_thread::yield();
    } else {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    }
  }

 private:
  uint32_t spins_ = 0;
};

}  // namespace

LaneTable::LaneTable(Epochs& epochs, MemoryMeter& meter, uint64_t secret)
    : epochs_(epochs), meter_(meter), secret_(secret | 1) {
  for (Segment& segment : segments_) {
    segment.array.store(MakeArray(kFewestHomes), std::memory_order_release);
  }
}

LaneTable::~LaneTable() {
  for (Segment& segment : segments_) {
    FreeArray(meter_, segment.array.load(std::memory_order_acquire));
  }
}

LaneTable::Array* LaneTable::MakeArray(uint32_t homes) {
  const size_t bytes = Array{homes}.bytes();
  void* const room = ::operator new(bytes, std::align_val_t{alignof(Array)});
  auto* const array = new (room) Array{homes};
  for (size_t i = 0; i < array->size(); ++i) new (array->buckets() + i) Bucket;
  meter_.Add(bytes);
  return array;
}

void LaneTable::FreeArray(MemoryMeter& meter, Array* array) {
  static_assert(std::is_trivially_destructible_v<Bucket>);
  meter.Subtract(array->bytes());
  ::operator delete(array, std::align_val_t{alignof(Array)});
}

// --- reading ------------------------------------------------------------------------------------

Lanes LaneTable::Find(uint64_t wanted) const {
  const uint64_t key = Stored(wanted);
  const uint64_t mixed = Mixed(key);
  // seq_cst: pairs with the store in Resize(); see Ordering in epochs.h.
  const Bucket* bucket = HomeOf(mixed, *SegmentOf(mixed).array.load(std::memory_order_seq_cst));
  for (;; ++bucket) {
    const uint32_t before = bucket->header.load(std::memory_order_acquire);
    const uint32_t matches = Matches(*bucket, key, std::memory_order_acquire);
    if (matches != 0) {
      const auto i = static_cast<size_t>(std::countr_zero(matches));
      const Lanes lanes = bucket->lanes[i].load(std::memory_order_acquire);
      const uint32_t after = bucket->header.load(std::memory_order_relaxed);
      if (before / kErasure == after / kErasure) return lanes;
      return Find(wanted);  // the entry may have been reused between the two loads
    }
    if (PassedIn(before) == 0) return 0;
  }
}

size_t LaneTable::CountEntries(size_t segment) const {
  size_t count = 0;
  Array& array = *segments_[segment].array.load(std::memory_order_seq_cst);
  for (size_t i = 0; i < array.size(); ++i) {
    for (const auto& key : array.buckets()[i].keys) {
      count += key.load(std::memory_order_relaxed) != 0 ? 1 : 0;
    }
  }
  return count;
}

// --- locks --------------------------------------------------------------------------------------

// False if the bucket's content has moved to the next array.
bool LaneTable::Lock(Bucket& bucket) {
  Patience patience;
  for (;;) {
    uint32_t header = bucket.header.load(std::memory_order_relaxed);
    if ((header & kMoved) != 0) return false;
    if ((header & kLocked) == 0 &&
        bucket.header.compare_exchange_weak(header, header | kLocked, std::memory_order_acquire)) {
      return true;
    }
    patience.Wait();
  }
}

// Pairs with Lock() of the next writer and, when an erasure is added, with the loads in Find().
void LaneTable::Unlock(Bucket& bucket, uint32_t add) {
  const uint32_t header = bucket.header.load(std::memory_order_relaxed);
  bucket.header.store((header & ~kLocked) + add, std::memory_order_release);
}

LaneTable::Bucket& LaneTable::LockHome(Segment& segment, uint64_t mixed, Array*& array) {
  Patience patience;
  for (;;) {
    array = segment.array.load(std::memory_order_seq_cst);
    Bucket* const home = HomeOf(mixed, *array);
    if (Lock(*home)) return *home;
    patience.Wait();  // the next array is about to be published
  }
}

// --- one entry, its home bucket locked -----------------------------------------------------------

// An entry changes only under the lock of its home bucket, so later buckets can be read without
// their own locks.
LaneTable::Spot LaneTable::FindIn(Bucket* home, uint64_t key) {
  for (Bucket* bucket = home;; ++bucket) {
    const uint32_t matches = Matches(*bucket, key, std::memory_order_relaxed);
    if (matches != 0) return {bucket, static_cast<size_t>(std::countr_zero(matches))};
    if (PassedIn(bucket->header.load(std::memory_order_relaxed)) == 0) return {};
  }
}

// A reader that sees the key must see its lanes: both stores pair with the acquire loads in Find().
void LaneTable::Fill(Bucket& bucket, size_t entry, uint64_t key, Lanes lanes) {
  bucket.lanes[entry].store(lanes, std::memory_order_release);
  bucket.keys[entry].store(key, std::memory_order_release);
}

bool LaneTable::Insert(Bucket* home, uint64_t key, Lanes lanes) {
  const uint32_t free = Matches(*home, 0, std::memory_order_relaxed);
  if (free == 0) return InsertBehind(home, key, lanes);
  Fill(*home, static_cast<size_t>(std::countr_zero(free)), key, lanes);
  return true;
}

// The home bucket is full. False if every bucket within kReach is full too. No later bucket can be
// moved: Resize() locks in ascending order and waits for the home bucket first.
bool LaneTable::InsertBehind(Bucket* home, uint64_t key, Lanes lanes) {
  size_t reached = 0;  // locked buckets after the home
  uint32_t free = 0;
  while (free == 0 && reached < kReach) {
    CHECK(Lock(home[++reached]));
    free = Matches(home[reached], 0, std::memory_order_relaxed);
  }
  const bool found = free != 0;
  // Readers must see the overflow counts of the earlier buckets before they can see the key; pairs
  // with the header loads in Find().
  for (size_t i = 0; i < reached && found; ++i) {
    home[i].header.store(home[i].header.load(std::memory_order_relaxed) + kPassed,
                         std::memory_order_release);
  }
  if (found) Fill(home[reached], static_cast<size_t>(std::countr_zero(free)), key, lanes);
  for (size_t i = reached; i > 0; --i) Unlock(home[i]);
  return found;
}

void LaneTable::EraseBehind(Bucket* home, const Spot& spot) {
  const auto distance = static_cast<size_t>(spot.bucket - home);
  for (size_t i = 1; i <= distance; ++i) CHECK(Lock(home[i]));
  spot.bucket->keys[spot.entry].store(0, std::memory_order_release);
  for (size_t i = 0; i < distance; ++i) {
    home[i].header.store(home[i].header.load(std::memory_order_relaxed) - kPassed,
                         std::memory_order_release);
  }
  for (size_t i = 1; i < distance; ++i) Unlock(home[i]);
  // The erasure count must change before the entry can be reused, so it changes with the unlock.
  Unlock(*spot.bucket, kErasure);
}

// --- writing ------------------------------------------------------------------------------------

bool LaneTable::Set(uint64_t wanted, Lanes lanes) {
  const uint64_t key = Stored(wanted);
  const uint64_t mixed = Mixed(key);
  Segment& segment = SegmentOf(mixed);
  for (;;) {
    Array* array = nullptr;
    Bucket& home = LockHome(segment, mixed, array);
    const Spot spot = FindIn(&home, key);
    if (spot.bucket != nullptr) {
      std::atomic<Lanes>& held = spot.bucket->lanes[spot.entry];
      held.store(held.load(std::memory_order_relaxed) | lanes, std::memory_order_release);
      Unlock(home);
      return true;
    }
    const bool fits = Insert(&home, key, lanes);
    Unlock(home);
    if (fits) {
      if (Counts(key)) {
        segment.sampled.fetch_add(1, std::memory_order_relaxed);
        GrowIfCrowded(segment, *array, false);
      }
      return true;
    }
    if (!GrowIfCrowded(segment, *array, true)) return false;
  }
}

void LaneTable::Clear(uint64_t wanted, Lanes lanes) {
  const uint64_t key = Stored(wanted);
  const uint64_t mixed = Mixed(key);
  Segment& segment = SegmentOf(mixed);
  Array* array = nullptr;
  Bucket& home = LockHome(segment, mixed, array);
  const Spot spot = FindIn(&home, key);
  if (spot.bucket == nullptr) return Unlock(home);
  std::atomic<Lanes>& held = spot.bucket->lanes[spot.entry];
  const Lanes left = held.load(std::memory_order_relaxed) & ~lanes;
  held.store(left, std::memory_order_release);
  if (left != 0) return Unlock(home);
  if (spot.bucket == &home) {
    home.keys[spot.entry].store(0, std::memory_order_release);
    Unlock(home, kErasure);
  } else {
    EraseBehind(&home, spot);
    Unlock(home);
  }
  if (Counts(key)) {
    segment.sampled.fetch_sub(1, std::memory_order_relaxed);
    ShrinkIfSparse(segment, *array);
  }
}

// --- size ---------------------------------------------------------------------------------------

uint64_t LaneTable::Estimate(const Segment& segment) {
  return static_cast<uint64_t>(std::max(0, segment.sampled.load(std::memory_order_relaxed))) *
         kSampled;
}

// True if the segment has, or is about to get, more room than `array`.
bool LaneTable::GrowIfCrowded(Segment& segment, const Array& array, bool forced) {
  const double room = static_cast<double>(array.homes) * kEntries;
  const auto entries = static_cast<double>(Estimate(segment));
  if (!forced && entries < room * kFull) return true;
  if (forced && array.homes > 256 && entries < room * kSuspicious) return false;
  if (segment.array.load(std::memory_order_acquire) != &array) return true;
  if (segment.resizing.exchange(true, std::memory_order_acquire)) return true;
  bool grown = true;
  if (segment.array.load(std::memory_order_acquire) == &array) {
    const uint32_t homes = array.homes + std::max(array.homes / 4, 1u);
    const size_t more = (homes - array.homes) * sizeof(Bucket);
    grown = meter_.TryAdd(more);
    if (grown) {
      meter_.Subtract(more);
      Resize(segment, homes);
    }
  }
  segment.resizing.store(false, std::memory_order_release);
  return grown;
}

void LaneTable::ShrinkIfSparse(Segment& segment, const Array& array) {
  const auto entries = static_cast<double>(Estimate(segment));
  if (array.homes <= kFewestHomes * 2) return;
  if (entries > static_cast<double>(array.homes) * kEntries * kSparseShare) return;
  if (segment.resizing.exchange(true, std::memory_order_acquire)) return;
  if (segment.array.load(std::memory_order_acquire) == &array) {
    const auto homes = static_cast<uint32_t>(entries / (kEntries * kRoomyShare)) + kFewestHomes;
    if (homes < array.homes) Resize(segment, homes);
  }
  segment.resizing.store(false, std::memory_order_release);
}

// `from` is locked and `to` is not published yet, so no other thread changes either.
bool LaneTable::CopyBucket(Bucket& from, Array& to) const {
  for (size_t i = 0; i < kEntries; ++i) {
    const uint64_t key = from.keys[i].load(std::memory_order_relaxed);
    if (key == 0) continue;
    const Lanes lanes = from.lanes[i].load(std::memory_order_relaxed);
    Bucket* const home = HomeOf(Mixed(key), to);
    if (!Insert(home, key, lanes)) return false;
  }
  return true;
}

// Called with `resizing` taken. Each bucket is locked and never unlocked again: writers wait for
// the new array, readers continue to read the old one. If the entries do not fit the new array, a
// larger one is tried while all buckets stay locked.
void LaneTable::Resize(Segment& segment, uint32_t homes) {
  Array* const old = segment.array.load(std::memory_order_acquire);
  const std::span<Bucket> buckets(old->buckets(), old->size());
  for (Bucket& bucket : buckets) CHECK(Lock(bucket));
  for (;;) {
    Array* const next = MakeArray(homes);
    bool fits = true;
    for (size_t i = 0; i < buckets.size() && fits; ++i) fits = CopyBucket(buckets[i], *next);
    if (fits) {
      for (Bucket& bucket : buckets) {
        const uint32_t header = bucket.header.load(std::memory_order_relaxed);
        bucket.header.store((header & ~kLocked) | kMoved, std::memory_order_release);
      }
      segment.array.store(next, std::memory_order_seq_cst);
      // The table may be destroyed before this runs, so it captures the meter only.
      epochs_.Retire([&meter = meter_, old] { FreeArray(meter, old); });
      return;
    }
    FreeArray(meter_, next);
    homes += std::max(homes / 4, 1u);
  }
}

}  // namespace fathom
