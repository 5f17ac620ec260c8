#include "index/lane_table.h"

#include <algorithm>
#include <thread>

#include "base/check.h"

namespace fathom {
namespace {

constexpr uint32_t kFewestHomes = 2;
// Of the entries that the homes have room for.
constexpr double kFull = 0.9;
constexpr double kSparse = 0.5;
constexpr double kRoomy = 0.75;
// A segment that must grow although it is emptier than this is being attacked, or very unlucky.
constexpr double kSuspicious = 0.2;

// Waits for a lock that is held for some tens of nanoseconds, unless its holder lost its core.
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
  auto array = std::make_unique<Array>();
  array->homes = homes;
  array->buckets = std::make_unique<Bucket[]>(homes + kReach);
  meter_.Add(array->bytes());
  return array.release();
}

void LaneTable::FreeArray(MemoryMeter& meter, Array* array) {
  meter.Subtract(array->bytes());
  delete array;
}

// --- reading ------------------------------------------------------------------------------------

void LaneTable::Prefetch(uint64_t key) const {
  const uint64_t mixed = Mixed(Stored(key));
  const Array& array = *SegmentOf(mixed).array.load(std::memory_order_seq_cst);
  const char* bucket = reinterpret_cast<const char*>(&array.buckets[HomeOf(mixed, array)]);
  __builtin_prefetch(bucket);
  __builtin_prefetch(bucket + 64);
}

uint64_t LaneTable::Find(uint64_t wanted) const {
  const uint64_t key = Stored(wanted);
  const uint64_t mixed = Mixed(key);
  // seq_cst: pairs with Resize(), see Epochs.
  const Array& array = *SegmentOf(mixed).array.load(std::memory_order_seq_cst);
  const Bucket* bucket = &array.buckets[HomeOf(mixed, array)];
  for (;;) {
    const uint32_t before = bucket->state.load(std::memory_order_acquire);
    for (const Entry& entry : bucket->entries) {
      if (entry.key.load(std::memory_order_acquire) != key) continue;
      const uint64_t lanes = entry.lanes.load(std::memory_order_acquire);
      const uint32_t after = bucket->state.load(std::memory_order_relaxed);
      if (before / kErasure == after / kErasure) return lanes;
      return Find(wanted);  // the entry may have changed hands between the two loads
    }
    if (bucket->passed.load(std::memory_order_acquire) == 0) return 0;
    ++bucket;
  }
}

size_t LaneTable::CountEntries() const {
  size_t count = 0;
  for (const Segment& segment : segments_) {
    const Array& array = *segment.array.load(std::memory_order_seq_cst);
    for (size_t i = 0; i < array.homes + kReach; ++i) {
      for (const Entry& entry : array.buckets[i].entries) {
        count += entry.key.load(std::memory_order_relaxed) != 0 ? 1 : 0;
      }
    }
  }
  return count;
}

// --- locks --------------------------------------------------------------------------------------

// False if the bucket has moved for good.
bool LaneTable::Lock(Bucket& bucket) {
  Patience patience;
  for (;;) {
    uint32_t state = bucket.state.load(std::memory_order_relaxed);
    if ((state & kMoved) != 0) return false;
    if ((state & kLocked) == 0 &&
        bucket.state.compare_exchange_weak(state, state | kLocked, std::memory_order_acquire)) {
      return true;
    }
    patience.Wait();
  }
}

// Pairs with Lock() of the next writer and, when an erasure is added, with the loads in Find().
void LaneTable::Unlock(Bucket& bucket, uint32_t add) {
  const uint32_t state = bucket.state.load(std::memory_order_relaxed);
  bucket.state.store((state & ~kLocked) + add, std::memory_order_release);
}

LaneTable::Bucket& LaneTable::LockHome(Segment& segment, uint64_t mixed, Array*& array) const {
  Patience patience;
  for (;;) {
    array = segment.array.load(std::memory_order_seq_cst);
    Bucket& home = array->buckets[HomeOf(mixed, *array)];
    if (Lock(home)) return home;
    patience.Wait();  // the next array is on its way
  }
}

// --- one entry, its home bucket locked
// ------------------------------------------------------------

// An entry changes only under the lock of its home, so buckets behind can be read without theirs.
LaneTable::Spot LaneTable::FindIn(Bucket* home, uint64_t key) {
  for (Bucket* bucket = home;; ++bucket) {
    for (Entry& entry : bucket->entries) {
      if (entry.key.load(std::memory_order_relaxed) == key) return {bucket, &entry};
    }
    if (bucket->passed.load(std::memory_order_relaxed) == 0) return {nullptr, nullptr};
  }
}

LaneTable::Entry* LaneTable::FreeEntry(Bucket& bucket) {
  for (Entry& entry : bucket.entries) {
    if (entry.key.load(std::memory_order_relaxed) == 0) return &entry;
  }
  return nullptr;
}

LaneTable::Outcome LaneTable::Insert(Bucket* home, uint64_t key, uint64_t lanes) {
  for (size_t i = 0; i <= kReach; ++i) {
    Bucket* bucket = home + i;
    // Never moved: the resizer comes from below and waits for the home.
    if (i > 0) CHECK(Lock(*bucket));
    Entry* const free = FreeEntry(*bucket);
    if (free != nullptr) {
      // Whoever sees the key must see its lanes and that the buckets before were passed.
      for (Bucket* before = home; before != bucket; ++before) {
        before->passed.fetch_add(1, std::memory_order_release);
      }
      free->lanes.store(lanes, std::memory_order_release);
      free->key.store(key, std::memory_order_release);
    }
    if (i > 0) Unlock(*bucket);
    if (free != nullptr) return Outcome::kDone;
  }
  return Outcome::kCrowded;
}

void LaneTable::Erase(Bucket* home, const Spot& spot) {
  if (spot.bucket != home) CHECK(Lock(*spot.bucket));
  spot.entry->key.store(0, std::memory_order_release);
  for (Bucket* before = home; before != spot.bucket; ++before) {
    before->passed.fetch_sub(1, std::memory_order_release);
  }
  // The count of erasures must change before the entry can be used again, hence with the unlock.
  if (spot.bucket != home) {
    Unlock(*spot.bucket, kErasure);
  } else {
    const uint32_t state = home->state.load(std::memory_order_relaxed);
    home->state.store(state + kErasure, std::memory_order_release);
  }
}

// --- writing ------------------------------------------------------------------------------------

bool LaneTable::Set(uint64_t wanted, uint64_t lanes) {
  const uint64_t key = Stored(wanted);
  const uint64_t mixed = Mixed(key);
  Segment& segment = SegmentOf(mixed);
  for (;;) {
    Array* array = nullptr;
    Bucket& home = LockHome(segment, mixed, array);
    const Spot spot = FindIn(&home, key);
    if (spot.entry != nullptr) {
      const uint64_t held = spot.entry->lanes.load(std::memory_order_relaxed);
      spot.entry->lanes.store(held | lanes, std::memory_order_release);
      Unlock(home);
      return true;
    }
    const Outcome outcome = Insert(&home, key, lanes);
    Unlock(home);
    if (outcome == Outcome::kDone) {
      if (Counts(key)) {
        segment.sampled.fetch_add(1, std::memory_order_relaxed);
        GrowIfCrowded(segment, *array, false);
      }
      return true;
    }
    if (!GrowIfCrowded(segment, *array, true)) return false;
  }
}

void LaneTable::Clear(uint64_t wanted, uint64_t lanes) {
  const uint64_t key = Stored(wanted);
  const uint64_t mixed = Mixed(key);
  Segment& segment = SegmentOf(mixed);
  Array* array = nullptr;
  Bucket& home = LockHome(segment, mixed, array);
  const Spot spot = FindIn(&home, key);
  bool erased = false;
  if (spot.entry != nullptr) {
    const uint64_t left = spot.entry->lanes.load(std::memory_order_relaxed) & ~lanes;
    spot.entry->lanes.store(left, std::memory_order_release);
    erased = left == 0;
    if (erased) Erase(&home, spot);
  }
  Unlock(home);
  if (erased && Counts(key)) {
    segment.sampled.fetch_sub(1, std::memory_order_relaxed);
    ShrinkIfSparse(segment, *array);
  }
}

// --- size ---------------------------------------------------------------------------------------

uint64_t LaneTable::Estimate(const Segment& segment) const {
  return static_cast<uint64_t>(std::max(0, segment.sampled.load(std::memory_order_relaxed))) *
         kSampled;
}

// True if there is, or will be, more room than in `array`.
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
  if (entries > static_cast<double>(array.homes) * kEntries * kSparse) return;
  if (segment.resizing.exchange(true, std::memory_order_acquire)) return;
  if (segment.array.load(std::memory_order_acquire) == &array) {
    const auto homes = static_cast<uint32_t>(entries / (kEntries * kRoomy)) + kFewestHomes;
    if (homes < array.homes) Resize(segment, homes);
  }
  segment.resizing.store(false, std::memory_order_release);
}

bool LaneTable::CopyBucket(Bucket& from, Array& to, const LaneTable& table) {
  for (const Entry& entry : from.entries) {
    const uint64_t key = entry.key.load(std::memory_order_relaxed);
    if (key == 0) continue;
    Bucket* home = &to.buckets[HomeOf(table.Mixed(key), to)];
    if (Insert(home, key, entry.lanes.load(std::memory_order_relaxed)) != Outcome::kDone) {
      return false;
    }
  }
  return true;
}

// Called with `resizing` taken. Each bucket is locked and never unlocked again: writers that come
// to it wait for the new array, readers go on reading it. If the entries do not fit the new array,
// a larger one is tried with everything locked already.
void LaneTable::Resize(Segment& segment, uint32_t homes) {
  Array* const old = segment.array.load(std::memory_order_acquire);
  const size_t buckets = old->homes + kReach;
  for (size_t i = 0; i < buckets; ++i) CHECK(Lock(old->buckets[i]));
  for (;;) {
    Array* const next = MakeArray(homes);
    bool fits = true;
    for (size_t i = 0; i < buckets && fits; ++i) fits = CopyBucket(old->buckets[i], *next, *this);
    if (fits) {
      for (size_t i = 0; i < buckets; ++i) {
        Bucket& bucket = old->buckets[i];
        const uint32_t state = bucket.state.load(std::memory_order_relaxed);
        bucket.state.store((state & ~kLocked) | kMoved, std::memory_order_release);
      }
      segment.array.store(next, std::memory_order_seq_cst);
      // The table may be gone by then.
      epochs_.Retire([&meter = meter_, old] { FreeArray(meter, old); });
      return;
    }
    FreeArray(meter_, next);
    homes += std::max(homes / 4, 1u);
  }
}

}  // namespace fathom
