// What do all caches of the fleet hold? One PrefixIndex per block shape, all under one memory
// limit.
//
// Threads  Open() from any thread; for readers and writers see PrefixIndex.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "router/index/lost_blocks.h"
#include "router/index/prefix_index.h"
#include "text/tokens/prefix_keys.h"

namespace fathom {

class CacheIndex {
 public:
  // More than a realistic fleet needs. A shape's index is never freed before the end.
  static constexpr size_t kMostShapes = 128;

  // With `lost_bytes` above 0 it also remembers blocks that are no longer held.
  CacheIndex(size_t max_bytes, uint64_t secret, size_t lost_bytes = 0)
      : lost_(lost_bytes == 0 ? nullptr : std::make_unique<LostBlocks>(lost_bytes)),
        meter_(max_bytes),
        secret_(secret) {}
  ~CacheIndex();
  CacheIndex(const CacheIndex&) = delete;
  CacheIndex& operator=(const CacheIndex&) = delete;

  // Null if there are too many shapes or ranks. `seat` belongs to the writer thread.
  std::unique_ptr<RankHoldings> Open(RankLabel label, BlockShape shape, Epochs::Seat& seat);

  size_t shapes() const { return count_.load(std::memory_order_acquire); }
  const PrefixIndex& at(size_t i) const { return *indexes_[i].load(std::memory_order_acquire); }

  // Blocks that all ranks hold, counted once per rank.
  size_t held() const;

  Epochs& epochs() { return epochs_; }
  const MemoryMeter& memory() const { return meter_; }
  // Null: lost blocks are not remembered.
  LostBlocks* lost() const { return lost_.get(); }

 private:
  PrefixIndex* Find(BlockShape shape);  // requires mutex_; creates it if needed; null: full

  const std::unique_ptr<LostBlocks> lost_;
  MemoryMeter meter_;  // outlives the epochs, whose destructor still frees memory
  Epochs epochs_;
  const uint64_t secret_;
  std::mutex mutex_;
  std::array<std::atomic<PrefixIndex*>, kMostShapes> indexes_{};  // the first count_ are set
  std::atomic<size_t> count_{0};
};

// One thread's access to the lookups.
class CacheReader {
 public:
  explicit CacheReader(const CacheIndex& index) : index_(index) {}

  struct Found {
    RankLabel rank;
    uint32_t block_size = 0;
    bool pairs = false;  // BlockShape's
    uint64_t held = 0;   // tokens of all prompts
    // Leading tokens of the prompt in this tier or a faster one that a request would not have to
    // prefill.
    std::array<size_t, kTiers> tokens{};
  };
  // One entry per present rank; valid until the next call. `known` holds keys of an earlier prompt
  // with the same beginning.
  std::span<const Found> Match(std::span<const TokenId> tokens, uint64_t seed,
                               const KnownPrefix& known = {});

  // All keys of the prompt of the last Match().
  void Keep(std::span<const TokenId> tokens, uint64_t seed, PrefixKeys& keys);

  // Of that prompt: leading tokens that were computed once, if that is more than any rank holds
  // now, and how the last of them was lost.
  struct Lost {
    size_t tokens = 0;
    LostBlocks::Loss loss;
  };
  Lost FindLost(std::span<const TokenId> tokens, uint64_t seed, const KnownPrefix& known = {});

  // The keys of that prompt's blocks of this shape, from block `from` on.
  std::span<const uint64_t> KeysOf(std::span<const TokenId> tokens, uint64_t seed, BlockShape shape,
                                   size_t from, const KnownPrefix& known = {});

 private:
  const CacheIndex& index_;
  // The keys of the last prompt, computed on demand.
  struct Keys {
    BlockShape shape;
    std::vector<uint64_t> storage;
    size_t made = 0;
    size_t deepest = 0;  // leading blocks that at least one rank holds

    KeyChain Chain(std::span<const TokenId> tokens, uint64_t seed, const KnownPrefix& known);
  };
  struct Cohort {
    explicit Cohort(const PrefixIndex& index) : reader(index), keys{.shape = index.shape()} {}
    IndexReader reader;
    Keys keys;
  };
  Keys& KeysFor(BlockShape shape);

  std::vector<std::unique_ptr<Cohort>> cohorts_;  // one per shape
  std::vector<std::unique_ptr<Keys>> others_;     // of shapes that occur only in lost blocks
  std::vector<Found> found_;
};

}  // namespace fathom
