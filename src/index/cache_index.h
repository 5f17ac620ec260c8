// Everything that is known of the fleet's caches: one PrefixIndex per way of cutting prompts into
// blocks, all within one limit of memory.
//
// Threads  Open() from any; for readers and writers see PrefixIndex.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "index/prefix_index.h"
#include "tokens/prefix_keys.h"

namespace fathom {

class CacheIndex {
 public:
  // More kinds of blocks than a sane fleet has. They are not given back.
  static constexpr size_t kMostShapes = 128;

  CacheIndex(size_t max_bytes, uint64_t secret) : meter_(max_bytes), secret_(secret) {}
  ~CacheIndex();
  CacheIndex(const CacheIndex&) = delete;
  CacheIndex& operator=(const CacheIndex&) = delete;

  // Null when there are too many shapes or ranks. `seat` belongs to the thread that will write.
  std::unique_ptr<RankHoldings> Open(RankLabel label, BlockShape shape, Epochs::Seat& seat);

  size_t shapes() const { return count_.load(std::memory_order_acquire); }
  const PrefixIndex& at(size_t i) const { return *indexes_[i].load(std::memory_order_acquire); }

  // Blocks that all ranks hold, counted once per rank.
  size_t held() const;

  Epochs& epochs() { return epochs_; }
  const MemoryMeter& memory() const { return meter_; }

 private:
  PrefixIndex* Find(BlockShape shape);  // mutex_ held; makes it if it can

  MemoryMeter meter_;  // outlives the epochs, which still free memory in the end
  Epochs epochs_;
  const uint64_t secret_;
  std::mutex mutex_;
  std::array<std::atomic<PrefixIndex*>, kMostShapes> indexes_{};  // the first count_ are set
  std::atomic<size_t> count_{0};
};

// One thread's way to ask.
class CacheReader {
 public:
  explicit CacheReader(const CacheIndex& index) : index_(index) {}

  struct Found {
    RankLabel rank;
    uint32_t block_size = 0;
    uint64_t held = 0;  // tokens of all prompts
    // Leading tokens of the prompt in this tier or a faster one, as many as a request would save.
    std::array<size_t, kTiers> tokens{};
  };
  // Of every rank that is there; valid until the next call. `known` is what an earlier prompt that
  // begins alike has left.
  std::span<const Found> Match(std::span<const TokenId> tokens, uint64_t seed,
                               const KnownPrefix& known = {});

  // The keys of the prompt that the last Match() was about, all of them.
  void Keep(std::span<const TokenId> tokens, uint64_t seed, PrefixKeys& keys);

 private:
  const CacheIndex& index_;
  struct Cohort {
    explicit Cohort(const PrefixIndex& index) : reader(index) {}
    IndexReader reader;
    std::vector<uint64_t> keys;
    size_t made = 0;  // of them, for the last prompt
  };
  std::vector<std::unique_ptr<Cohort>> cohorts_;  // one per shape
  std::vector<Found> found_;
};

}  // namespace fathom
