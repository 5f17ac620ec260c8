// The lookup of a prompt's depths.
#include <algorithm>
#include <bit>

#include "router/index/prefix_index.h"

namespace fathom {
namespace {

constexpr size_t kFirstStep = 8;
constexpr size_t kPrefetchAhead = 8;  // blocks between prefetch and use
constexpr size_t kNarrow = 4;         // up to this many blocks, probing all is cheaper

// Tracks the depth of one rank with several lanes, block by block.
class Climber {
 public:
  explicit Climber(const LayeredRank& rank) : rank_(&rank) {}

  const LayeredRank& rank() const { return *rank_; }
  const Depth& best() const { return best_; }

  // Takes the next block, which `lanes` hold. False when no tier can get any deeper.
  bool Step(Lanes lanes) {
    ++blocks_;
    bool alive = false;
    const size_t tiers = rank_->device_only ? 1 : kTiers;
    for (size_t tier = 0; tier < tiers; ++tier) {
      if (broken_[tier]) continue;
      if (!StepTier(tier, lanes)) {
        broken_[tier] = true;
        continue;
      }
      alive = true;
    }
    if (rank_->device_only) best_.blocks.fill(best_.blocks[0]);
    return alive;
  }

 private:
  bool StepTier(size_t tier, Lanes lanes) {
    bool complete = true;  // a prompt can continue from this boundary
    for (size_t g = 0; g < rank_->groups; ++g) {
      const LayeredRank::Group& group = rank_->group[g];
      const bool holds = (lanes & group.lanes[tier]) != 0;
      if (group.blocks_needed == 0) {
        if (!holds) return false;
        continue;
      }
      uint32_t& run = run_[tier][g];
      run = holds ? run + 1 : 0;
      complete = complete && run >= std::min(group.blocks_needed, blocks_);
    }
    if (complete) best_.blocks[tier] = blocks_;
    return true;
  }

  const LayeredRank* rank_;
  uint32_t blocks_ = 0;
  std::array<bool, kTiers> broken_{};
  std::array<std::array<uint32_t, LayeredRank::kMostGroups>, kTiers> run_{};
  Depth best_;
};

}  // namespace

std::span<const Depth> IndexReader::Match(KeyChain& keys) {
  depths_.assign(index_.rank_numbers(), Depth{});
  if (keys.size() == 0) return depths_;
  const Epochs::Pin pin(seat_);
  const size_t banks = index_.bank_count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < banks; ++i) {
    MatchBank(*index_.banks_[i].load(std::memory_order_acquire), keys);
  }
  return depths_;
}

void IndexReader::MatchBank(const Bank& bank, KeyChain& keys) {
  // The flags are read before the blocks: writers clear `plain` before they make a gap. Pairs with
  // the release stores of `single` and `plain`.
  const Lanes single = bank.single.load(std::memory_order_acquire);
  const Lanes plain = bank.plain.load(std::memory_order_acquire) & single;
  const Lanes first = bank.table.Find(keys.At(0));
  if (first == 0) return;
  if ((first & plain) != 0) Search(bank, keys, first & plain);
  const BankLayout* const layout = bank.layout.load(std::memory_order_seq_cst);
  const bool layered = layout != nullptr && (first & layout->lanes) != 0;
  const Lanes broken = first & single & ~plain;
  if (broken != 0 || layered) Walk(bank, keys, broken, layered ? layout : nullptr);
}

void IndexReader::SetDepth(const Bank& bank, Lanes lanes, size_t blocks) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(lanes));
    const uint32_t rank = bank.rank_of[lane].load(std::memory_order_relaxed);
    if (rank < depths_.size()) depths_[rank].blocks.fill(static_cast<uint32_t>(blocks));
  }
}

// `lanes` are unbroken and hold the first block, so the lanes that hold a block are among those
// that hold the one before it. Steps of doubling size find ranges where some lanes end; Divide()
// finds the exact blocks.
void IndexReader::Search(const Bank& bank, KeyChain& keys, Lanes lanes) {
  const size_t last = keys.size() - 1;
  size_t low = 0;
  for (size_t step = kFirstStep; low < last && lanes != 0; step *= 2) {
    const size_t high = std::min(low + step, last);
    const Lanes at_high = bank.table.Find(keys.At(high)) & lanes;
    if (at_high != lanes) Divide(bank, keys, low, lanes, high, at_high);
    low = high;
    lanes = at_high;
  }
  SetDepth(bank, lanes, keys.size());
}

// The lanes in `at_low` hold block `low`. Of these, the lanes in `at_high` also hold block `high`.
void IndexReader::Divide(const Bank& bank, KeyChain& keys, size_t low, Lanes at_low, size_t high,
                         Lanes at_high) {
  if (high - low <= kNarrow) {
    for (size_t i = low + 1; i < high; ++i) bank.table.Prefetch(keys.At(i));
    for (size_t i = low + 1; i < high; ++i) {
      const Lanes here = (bank.table.Find(keys.At(i)) & at_low) | at_high;
      SetDepth(bank, at_low & ~here, i);
      at_low = here;
    }
    SetDepth(bank, at_low & ~at_high, high);
    return;
  }
  const size_t middle = low + (high - low) / 2;
  const Lanes here = (bank.table.Find(keys.At(middle)) & at_low) | at_high;
  if (here != at_low) Divide(bank, keys, low, at_low, middle, here);
  if (here != at_high) Divide(bank, keys, middle, here, high, at_high);
}

// Goes block by block: for lanes with gaps, and ranks whose depth depends on several lanes.
void IndexReader::Walk(const Bank& bank, KeyChain& keys, Lanes lanes, const BankLayout* layout) {
  std::array<Climber*, BankLayout::kMostRanks> alive{};
  alignas(Climber) std::array<std::byte, sizeof(Climber) * BankLayout::kMostRanks> room;
  size_t climbers = 0;
  if (layout != nullptr) {
    for (const LayeredRank& rank : layout->ranks) {
      alive[climbers] = new (&room[climbers * sizeof(Climber)]) Climber(rank);
      ++climbers;
    }
  }
  const auto finish = [this](const Climber& climber) {
    if (climber.rank().rank < depths_.size()) depths_[climber.rank().rank] = climber.best();
  };
  const size_t blocks = keys.size();
  size_t i = 0;
  for (; i < blocks && (lanes != 0 || climbers > 0); ++i) {
    if (i + kPrefetchAhead < blocks) bank.table.Prefetch(keys.At(i + kPrefetchAhead));
    const Lanes here = bank.table.Find(keys.At(i));
    SetDepth(bank, lanes & ~here, i);
    lanes &= here;
    for (size_t c = 0; c < climbers;) {
      if (alive[c]->Step(here)) {
        ++c;
      } else {
        finish(*alive[c]);
        alive[c] = alive[--climbers];
      }
    }
  }
  SetDepth(bank, lanes, i);
  for (size_t c = 0; c < climbers; ++c) finish(*alive[c]);
}

}  // namespace fathom
