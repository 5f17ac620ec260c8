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

#include "index/lost_blocks.h"
#include "index/prefix_index.h"
#include "tokens/prefix_keys.h"

namespace fathom {

class CacheIndex {
 public:
  // More kinds of blocks than a sane fleet has. They are not given back.
  static constexpr size_t kMostShapes = 128;

  // With `lost_bytes` other than 0 it also remembers what is not there any more.
  CacheIndex(size_t max_bytes, uint64_t secret, size_t lost_bytes = 0)
      : lost_(lost_bytes == 0 ? nullptr : std::make_unique<LostBlocks>(lost_bytes)),
        meter_(max_bytes),
        secret_(secret) {}
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
  // Null: it is not remembered.
  LostBlocks* lost() const { return lost_.get(); }

 private:
  PrefixIndex* Find(BlockShape shape);  // mutex_ held; makes it if it can

  const std::unique_ptr<LostBlocks> lost_;
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
    bool pairs = false;  // BlockShape's
    uint64_t held = 0;   // tokens of all prompts
    // Leading tokens of the prompt in this tier or a faster one, as many as a request would save.
    std::array<size_t, kTiers> tokens{};
  };
  // Of every rank that is there; valid until the next call. `known` is what an earlier prompt that
  // begins alike has left.
  std::span<const Found> Match(std::span<const TokenId> tokens, uint64_t seed,
                               const KnownPrefix& known = {});

  // The keys of the prompt that the last Match() was about, all of them.
  void Keep(std::span<const TokenId> tokens, uint64_t seed, PrefixKeys& keys);

  // Of that prompt: leading tokens that were computed once, where that is more than anybody holds
  // now; and what became of the last of them.
  struct Lost {
    size_t tokens = 0;
    LostBlocks::Loss loss;
  };
  Lost FindLost(std::span<const TokenId> tokens, uint64_t seed, const KnownPrefix& known = {});

  // Of that prompt, the keys of its blocks of this shape, from block `from` on.
  std::span<const uint64_t> KeysOf(std::span<const TokenId> tokens, uint64_t seed, BlockShape shape,
                                   size_t from, const KnownPrefix& known = {});

 private:
  const CacheIndex& index_;
  // The keys of the last prompt, as far as they were needed.
  struct Keys {
    BlockShape shape;
    std::vector<uint64_t> storage;
    size_t made = 0;
    size_t deepest = 0;  // blocks that somebody holds of it

    KeyChain Chain(std::span<const TokenId> tokens, uint64_t seed, const KnownPrefix& known);
  };
  struct Cohort {
    explicit Cohort(const PrefixIndex& index) : reader(index), keys{.shape = index.shape()} {}
    IndexReader reader;
    Keys keys;
  };
  Keys& KeysFor(BlockShape shape);

  std::vector<std::unique_ptr<Cohort>> cohorts_;  // one per shape
  std::vector<std::unique_ptr<Keys>> others_;     // of shapes that only lost blocks have
  std::vector<Found> found_;
};

}  // namespace fathom
