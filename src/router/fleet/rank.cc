#include "router/fleet/rank.h"

#include <algorithm>

namespace fathom {

RankTable::RankTable(std::shared_ptr<FleetPulse> pulse) : pulse_(std::move(pulse)) {
  only_.store(&Make(0), std::memory_order_release);
}

void RankTable::Stand(std::shared_ptr<LoadBoard> board, std::string group) {
  const std::lock_guard lock(mutex_);
  board_ = std::move(board);
  group_ = std::move(group);
  for (const auto& rank : ranks_) {
    if (rank) rank->load.Stand(*board_, group_);
  }
  FleetPulse::Raise(pulse_);
}

Rank& RankTable::Make(uint32_t number) {
  if (!ranks_[number]) {
    ranks_[number] = std::make_unique<Rank>(number);
    if (board_) ranks_[number]->load.Stand(*board_, group_);
    if (parity_) ranks_[number]->witness.Probed(parity_);
    slots_[number].rank.store(ranks_[number].get(), std::memory_order_release);
    end_.store(std::max(end_.load(std::memory_order_relaxed), number + 1),
               std::memory_order_release);
  }
  return *ranks_[number];
}

void RankTable::Know(uint32_t number) {
  if (number >= kMost) return;
  const std::lock_guard lock(mutex_);
  Make(number);
  if (slots_[number].followed.fetch_add(1, std::memory_order_acq_rel) == 0) {
    followed_.fetch_add(1, std::memory_order_acq_rel);
    FindOnly();
    FleetPulse::Raise(pulse_);
  }
}

void RankTable::Forget(uint32_t number) {
  if (number >= kMost) return;
  const std::lock_guard lock(mutex_);
  if (slots_[number].followed.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    followed_.fetch_sub(1, std::memory_order_acq_rel);
    FindOnly();
    FleetPulse::Raise(pulse_);
  }
}

void RankTable::Recover() {
  const std::lock_guard lock(mutex_);
  for (const auto& rank : ranks_) {
    if (rank) rank->recoveries.fetch_add(1, std::memory_order_relaxed);
  }
}

void RankTable::Probed(std::shared_ptr<const ParityReport> report) {
  const std::lock_guard lock(mutex_);
  parity_ = std::move(report);
  for (const auto& rank : ranks_) {
    if (rank) rank->witness.Probed(parity_);
  }
}

void RankTable::FindOnly() {
  const auto followed = [](const Slot& s) {
    return s.followed.load(std::memory_order_relaxed) > 0;
  };
  const auto first = std::ranges::find_if(slots_, followed);
  const Slot& slot = first == slots_.end() ? slots_[0] : *first;
  only_.store(slot.rank.load(std::memory_order_relaxed), std::memory_order_release);
}

Rank* RankTable::Find(uint32_t number) const {
  if (number >= kMost) return nullptr;
  if (number != 0 && slots_[number].followed.load(std::memory_order_acquire) == 0) return nullptr;
  return slots_[number].rank.load(std::memory_order_acquire);
}

}  // namespace fathom
