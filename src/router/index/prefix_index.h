// How much of this prompt does each rank hold?
//
// One index serves the ranks that use the same block shape.
//
//   auto holdings = index.AddRank(label, seat); // the rank's writer
//   holdings->Store(run, now);
//   IndexReader reader(index);                  // one per thread
//   const auto depths = reader.Match(keys);     // depths[holdings->rank()]
//
// Threads    Match() runs on any number of threads; it takes no locks and, once its buffers have
//            the fleet's size, allocates nothing. Each rank has one writer.
// Staleness  A lookup that races with a writer sees each block before or after the change. A stale
//            answer costs a cache miss, never a wrong completion.
// Cost       A lookup stops at once on a prompt that no rank holds. Otherwise it searches: the
//            number of keys computed grows with the depth found, the number of probes with its
//            logarithm and with the number of different depths.
// Memory     About 60 bytes per block and rank, less when ranks hold the same blocks; see
//            MemoryMeter.
// Design     docs/design/0005-index.md
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/rank_label.h"
#include "router/index/bank.h"
#include "router/index/epochs.h"
#include "router/index/lost_blocks.h"
#include "router/index/memory_meter.h"
#include "router/index/rank_holdings.h"
#include "text/tokens/key_chain.h"

namespace fathom {

// Leading blocks of a prompt that a rank holds in this tier or a faster one.
struct Depth {
  std::array<uint32_t, kTiers> blocks{};
  uint32_t device() const { return blocks[0]; }
  friend bool operator==(const Depth&, const Depth&) = default;
};

class PrefixIndex {
 public:
  static constexpr size_t kMostRanks = 16384;

  // The epochs and the meter must outlive the index, and the meter the epochs. `lost` records
  // removed blocks; null: they are not recorded.
  PrefixIndex(BlockShape shape, Epochs& epochs, MemoryMeter& meter, uint64_t secret,
              LostBlocks* lost = nullptr);
  ~PrefixIndex();
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // Null if there are kMostRanks already. The index must outlive the result, and so must the seat,
  // which belongs to the writer thread.
  std::unique_ptr<RankHoldings> AddRank(RankLabel label, Epochs::Seat& seat);

  const BlockShape& shape() const { return shape_; }
  Epochs& epochs() const { return epochs_; }
  // Ranks are numbered below this.
  size_t rank_numbers() const { return rank_numbers_.load(std::memory_order_acquire); }
  // nullopt: there is no such rank now.
  std::optional<RankLabel> Label(uint32_t rank) const;
  size_t ranks() const { return ranks_.load(std::memory_order_relaxed); }
  // Held blocks of one rank over all its lanes, and the sum over all ranks (a block is counted once
  // per rank).
  size_t held(uint32_t rank) const { return labels_[rank].held.load(std::memory_order_relaxed); }
  size_t held() const { return held_.load(std::memory_order_relaxed); }
  // Distinct blocks that at least one rank holds. Scans all tables, or one of the parts that they
  // have together.
  size_t CountBlocks() const;
  size_t CountBlocks(size_t part) const;
  size_t parts() const;

 private:
  friend class IndexReader;
  friend class RankHoldings;
  static constexpr size_t kMostBanks = 1024;

  struct Labelled {
    std::atomic<uint64_t> worker{0};
    std::atomic<uint32_t> dp_rank{0};
    std::atomic<bool> here{false};
    std::atomic<size_t> held{0};  // blocks
  };

  // Called by a rank on its writer thread: assigns a bit to its last, new lane. False if none is
  // free.
  bool GiveLane(RankHoldings& rank);
  void TakeBack(RankHoldings& rank);
  // With mutex_ held.
  Bank* BankWithRoom(size_t lanes);
  bool MoveTo(RankHoldings& rank, Bank* bank);
  void TakeBit(RankHoldings& rank, RankHoldings::Lane& lane);
  void Describe(RankHoldings& rank);
  void Undescribe(Bank& bank, uint32_t rank, Lanes lanes);
  void PublishLayout(Bank& bank);
  static LayeredRank Layered(const RankHoldings& rank);

  const BlockShape shape_;
  Epochs& epochs_;
  MemoryMeter& meter_;
  const uint64_t secret_;
  LostBlocks* const lost_;
  std::mutex mutex_;
  std::array<std::atomic<Bank*>, kMostBanks> banks_{};  // the first bank_count_ are set
  std::atomic<size_t> bank_count_{0};
  std::unique_ptr<Labelled[]> labels_;
  std::vector<uint32_t> free_ranks_;  // guarded by mutex_
  std::atomic<size_t> rank_numbers_{0};
  std::atomic<size_t> ranks_{0};
  std::atomic<size_t> held_{0};  // the sum of the ranks' own counts
};

class IndexReader {
 public:
  explicit IndexReader(const PrefixIndex& index) : index_(index), seat_(index.epochs()) {}

  // The depth of every rank, indexed by its number; valid until the next call.
  std::span<const Depth> Match(KeyChain& keys);

 private:
  void MatchBank(const Bank& bank, KeyChain& keys);
  void Search(const Bank& bank, KeyChain& keys, Lanes lanes);
  void Divide(const Bank& bank, KeyChain& keys, size_t low, Lanes at_low, size_t high,
              Lanes at_high);
  void Walk(const Bank& bank, KeyChain& keys, Lanes lanes, const BankLayout* layout);
  void SetDepth(const Bank& bank, Lanes lanes, size_t blocks);

  const PrefixIndex& index_;
  Epochs::Seat seat_;
  std::vector<Depth> depths_;
};

}  // namespace fathom
