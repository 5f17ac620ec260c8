#include "router/index/prefix_index.h"

#include <algorithm>

#include "base/check.h"

namespace fathom {

PrefixIndex::PrefixIndex(BlockShape shape, Epochs& epochs, MemoryMeter& meter, uint64_t secret,
                         LostBlocks* lost)
    : shape_(shape),
      epochs_(epochs),
      meter_(meter),
      secret_(secret),
      lost_(lost),
      labels_(std::make_unique<Labelled[]>(kMostRanks)) {}

PrefixIndex::~PrefixIndex() {
  CHECK(ranks() == 0);
  for (size_t i = 0; i < bank_count_.load(std::memory_order_acquire); ++i) {
    delete banks_[i].load(std::memory_order_acquire);
  }
}

std::unique_ptr<RankHoldings> PrefixIndex::AddRank(RankLabel label, Epochs::Seat& seat) {
  const std::lock_guard lock(mutex_);
  uint32_t rank = 0;
  if (!free_ranks_.empty()) {
    rank = free_ranks_.back();
    free_ranks_.pop_back();
  } else if (rank_numbers_.load(std::memory_order_relaxed) < kMostRanks) {
    rank = static_cast<uint32_t>(rank_numbers_.fetch_add(1, std::memory_order_release));
  } else {
    return nullptr;
  }
  labels_[rank].worker.store(label.worker, std::memory_order_relaxed);
  labels_[rank].dp_rank.store(label.dp_rank, std::memory_order_relaxed);
  labels_[rank].here.store(true, std::memory_order_release);
  ranks_.fetch_add(1, std::memory_order_relaxed);
  return std::unique_ptr<RankHoldings>(new RankHoldings(*this, rank, label, seat));
}

std::optional<RankLabel> PrefixIndex::Label(uint32_t rank) const {
  if (!labels_[rank].here.load(std::memory_order_acquire)) return std::nullopt;
  return RankLabel{labels_[rank].worker.load(std::memory_order_relaxed),
                   labels_[rank].dp_rank.load(std::memory_order_relaxed)};
}

size_t PrefixIndex::parts() const {
  return bank_count_.load(std::memory_order_acquire) * LaneTable::kSegments;
}

size_t PrefixIndex::CountBlocks(size_t part) const {
  Epochs::Seat seat(epochs_);
  const Epochs::Pin pin(seat);
  const Bank* const bank = banks_[part / LaneTable::kSegments].load(std::memory_order_acquire);
  return bank->table.CountEntries(part % LaneTable::kSegments);
}

size_t PrefixIndex::CountBlocks() const {
  size_t blocks = 0;
  for (size_t part = 0; part < parts(); ++part) blocks += CountBlocks(part);
  return blocks;
}

// --- lanes --------------------------------------------------------------------------------------

bool PrefixIndex::GiveLane(RankHoldings& rank) {
  const std::lock_guard lock(mutex_);
  const size_t wanted = rank.lanes_.size();
  if (rank.bank_ == nullptr) rank.bank_ = BankWithRoom(wanted);
  if (rank.bank_ == nullptr) return false;
  if (rank.bank_->free_lanes() == 0 && !MoveTo(rank, BankWithRoom(wanted))) return false;
  TakeBit(rank, *rank.lanes_.back());
  Describe(rank);
  return true;
}

Bank* PrefixIndex::BankWithRoom(size_t lanes) {
  const size_t count = bank_count_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    Bank* const bank = banks_[i].load(std::memory_order_relaxed);
    if (bank->free_lanes() >= lanes) return bank;
  }
  if (count == kMostBanks) return nullptr;
  auto* const bank = new Bank(epochs_, meter_, secret_ + 2 * count);
  banks_[count].store(bank, std::memory_order_release);
  bank_count_.store(count + 1, std::memory_order_release);  // pairs with IndexReader::Match()
  return bank;
}

void PrefixIndex::TakeBit(RankHoldings& rank, RankHoldings::Lane& lane) {
  Bank& bank = *rank.bank_;
  const int number = std::countr_one(bank.used);
  lane.bit = Lanes{1} << number;
  bank.used |= lane.bit;
  bank.rank_of[static_cast<size_t>(number)].store(rank.rank_, std::memory_order_relaxed);
}

// Moves all lanes but the last, which has no bit yet, to a bank with room for all. A concurrent
// lookup finds the rank in the old bank until the new one is complete, or briefly in both.
bool PrefixIndex::MoveTo(RankHoldings& rank, Bank* bank) {
  if (bank == nullptr) return false;
  Bank& old = *rank.bank_;
  rank.bank_ = bank;
  Lanes old_bits = 0;
  std::vector<std::pair<RankHoldings::Lane*, Lanes>> moved;
  for (size_t i = 0; i + 1 < rank.lanes_.size(); ++i) {
    RankHoldings::Lane& lane = *rank.lanes_[i];
    moved.emplace_back(&lane, lane.bit);
    old_bits |= lane.bit;
    TakeBit(rank, lane);
    lane.ledger.ForEachHeld([&](uint64_t key) { bank->table.Set(key, lane.bit); });
  }
  Undescribe(old, rank.rank_, old_bits);
  for (const auto& [lane, bit] : moved) {
    lane->ledger.ForEachHeld([&](uint64_t key) { old.table.Clear(key, bit); });
  }
  old.used &= ~old_bits;
  return true;
}

void PrefixIndex::TakeBack(RankHoldings& rank) {
  const std::lock_guard lock(mutex_);
  if (rank.bank_ != nullptr) {
    Lanes bits = 0;
    for (const auto& lane : rank.lanes_) bits |= lane->bit;
    Undescribe(*rank.bank_, rank.rank_, bits);
    rank.bank_->used &= ~bits;
  }
  labels_[rank.rank_].here.store(false, std::memory_order_relaxed);
  free_ranks_.push_back(rank.rank_);
  ranks_.fetch_sub(1, std::memory_order_relaxed);
}

// --- the description of lanes for lookups --------------------------------------------------------

void PrefixIndex::Describe(RankHoldings& rank) {
  Bank& bank = *rank.bank_;
  const RankHoldings::Lane& first = *rank.lanes_.front();
  if (rank.lanes_.size() == 1 && first.tracked()) {
    bank.plain.fetch_or(first.bit, std::memory_order_relaxed);
    bank.single.fetch_or(first.bit, std::memory_order_release);
    return;
  }
  bank.single.fetch_and(~first.bit, std::memory_order_release);
  std::erase_if(bank.layered, [&](const LayeredRank& old) { return old.rank == rank.rank_; });
  bank.layered.push_back(Layered(rank));
  PublishLayout(bank);
}

void PrefixIndex::Undescribe(Bank& bank, uint32_t rank, Lanes lanes) {
  bank.single.fetch_and(~lanes, std::memory_order_release);
  bank.plain.fetch_and(~lanes, std::memory_order_release);
  if (std::erase_if(bank.layered, [&](const LayeredRank& old) { return old.rank == rank; }) > 0) {
    PublishLayout(bank);
  }
}

void PrefixIndex::PublishLayout(Bank& bank) {
  auto* const next = new BankLayout{bank.layered, 0};
  for (const LayeredRank& rank : next->ranks) next->lanes |= rank.all_lanes;
  const BankLayout* const old = bank.layout.exchange(next, std::memory_order_seq_cst);
  if (old != nullptr) epochs_.Retire([old] { delete old; });
}

LayeredRank PrefixIndex::Layered(const RankHoldings& rank) {
  LayeredRank layered{.rank = rank.rank_};
  std::array<uint32_t, LayeredRank::kMostGroups> numbers{};
  for (const auto& lane : rank.lanes_) {
    const auto end = numbers.begin() + layered.groups;
    const auto place = std::find(numbers.begin(), end, lane->part.group) - numbers.begin();
    LayeredRank::Group& group = layered.group[static_cast<size_t>(place)];
    if (place == layered.groups) {
      numbers[layered.groups++] = lane->part.group;
      if (lane->kind == GroupKind::kWindow) {
        const uint32_t size = rank.shape_.size;
        group.blocks_needed = std::max((lane->window + size - 2) / size, 1u);
      }
    }
    for (size_t tier = static_cast<size_t>(lane->part.tier); tier < kTiers; ++tier) {
      group.lanes[tier] |= lane->bit;
    }
    layered.all_lanes |= lane->bit;
    layered.device_only = layered.device_only && lane->part.tier == Tier::kDevice;
  }
  return layered;
}

}  // namespace fathom
