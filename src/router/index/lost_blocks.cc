#include "router/index/lost_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace fathom {
namespace {

constexpr uint64_t kHowShift = 30;
constexpr uint64_t kOwnerShift = 32;

// The kernel provides zeroed pages on first use, so an unused table costs no memory.
void* Zeroed(size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

}  // namespace

LostBlocks::LostBlocks(size_t bytes)
    : count_(std::max<size_t>(bytes / sizeof(Bucket), 1)),
      buckets_(static_cast<Bucket*>(Zeroed(count_ * sizeof(Bucket)))) {}

LostBlocks::~LostBlocks() { ::munmap(buckets_, count_ * sizeof(Bucket)); }

uint32_t LostBlocks::OwnerOf(uint64_t worker, uint32_t dp_rank) {
  uint64_t mixed = (worker ^ (uint64_t{dp_rank} << 40)) * 0x9e3779b97f4a7c15u;
  mixed ^= mixed >> 29;
  return static_cast<uint32_t>((mixed * 0xbf58476d1ce4e5b9u) >> 32);
}

// Keys are hashes already.
LostBlocks::Bucket& LostBlocks::BucketOf(uint64_t key) const {
  const uint64_t mixed = key * 0xd6e8feb86659fd93u;
  return buckets_[static_cast<size_t>((static_cast<unsigned __int128>(mixed) * count_) >> 64)];
}

void LostBlocks::Add(uint64_t key, LostHow how, uint32_t owner) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const uint64_t loss = uint64_t{owner} << kOwnerShift |
                        uint64_t{static_cast<uint8_t>(how)} << kHowShift | now_.load(kRelaxed);
  Bucket& bucket = BucketOf(key);
  Place* chosen = nullptr;
  uint64_t oldest = ~uint64_t{0};
  for (Place& place : bucket.places) {
    const uint64_t there = place.key.load(kRelaxed);
    if (there == key || there == 0) {
      chosen = &place;
      break;
    }
    const uint64_t second = place.loss.load(kRelaxed) & kSecondMask;
    if (second < oldest) {
      oldest = second;
      chosen = &place;
    }
  }
  chosen->loss.store(loss, kRelaxed);
  chosen->key.store(key, kRelaxed);
}

// Each key is in a different cache line, so buckets are prefetched ahead of use.
void LostBlocks::Add(std::span<const uint64_t> keys, LostHow how, uint32_t owner) {
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < keys.size() + kAhead; ++i) {
    if (i < keys.size()) __builtin_prefetch(&BucketOf(keys[i]), 1);
    if (i >= kAhead) Add(keys[i - kAhead], how, owner);
  }
}

std::optional<LostBlocks::Loss> LostBlocks::Find(uint64_t key) const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  for (const Place& place : BucketOf(key).places) {
    if (place.key.load(kRelaxed) != key) continue;
    const uint64_t loss = place.loss.load(kRelaxed);
    return Loss{.how = static_cast<LostHow>((loss >> kHowShift) & 3),
                .owner = static_cast<uint32_t>(loss >> kOwnerShift),
                .second = static_cast<uint32_t>(loss & kSecondMask)};
  }
  return std::nullopt;
}

void LostBlocks::AddShape(BlockShape shape) {
  if (shape.size == 0 || shape.size > kLargestSize) return;
  const uint32_t packed = Pack(shape);
  for (std::atomic<uint32_t>& known : shapes_) {
    uint32_t there = known.load(std::memory_order_relaxed);
    if (there == packed) return;
    if (there == 0 && known.compare_exchange_strong(there, packed, std::memory_order_relaxed))
      return;
    if (there == packed) return;  // another thread has added it
  }
}

}  // namespace fathom
