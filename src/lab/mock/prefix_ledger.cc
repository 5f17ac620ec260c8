#include "lab/mock/prefix_ledger.h"

#include <utility>

namespace fathom {
namespace {

constexpr size_t kFirstSlots = 1024;  // a power of two, as always
constexpr BlockHash kEmpty = 0;

// No hash looks like an empty slot.
BlockHash Entry(BlockHash hash) { return hash == kEmpty ? 1 : hash; }

}  // namespace

PrefixLedger::PrefixLedger(size_t most) : most_(most), slots_(kFirstSlots, kEmpty) {}

size_t PrefixLedger::SlotOf(BlockHash hash) const {
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  while (slots_[i] != kEmpty && slots_[i] != hash) i = (i + 1) & mask;
  return i;
}

void PrefixLedger::Grow() {
  const std::vector<BlockHash> old =
      std::exchange(slots_, std::vector<BlockHash>(slots_.size() * 2, kEmpty));
  for (const BlockHash hash : old) {
    if (hash != kEmpty) slots_[SlotOf(hash)] = hash;
  }
}

void PrefixLedger::Enter(std::span<const BlockHash> blocks) {
  const std::lock_guard lock(mutex_);
  for (const BlockHash block : blocks) {
    const BlockHash hash = Entry(block);
    BlockHash& slot = slots_[SlotOf(hash)];
    if (slot == hash) continue;
    if (used_ == most_) {
      full_ = true;
      return;
    }
    slot = hash;
    if (++used_ * 2 > slots_.size()) Grow();
  }
}

size_t PrefixLedger::Known(std::span<const BlockHash> blocks) const {
  const std::lock_guard lock(mutex_);
  size_t known = 0;
  while (known < blocks.size() && slots_[SlotOf(Entry(blocks[known]))] != kEmpty) ++known;
  return known;
}

bool PrefixLedger::full() const {
  const std::lock_guard lock(mutex_);
  return full_;
}

}  // namespace fathom
