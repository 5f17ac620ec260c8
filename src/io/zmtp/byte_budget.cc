#include "io/zmtp/byte_budget.h"

#include <algorithm>

namespace fathom {
namespace {

size_t Counted(size_t bytes) { return bytes > ByteBudget::kFree ? bytes : 0; }

}  // namespace

bool ByteBudget::MakeRoom(const ByteHolder& asking, size_t bytes) {
  while (used_ - asking.held_ + bytes > most_) {
    std::vector<ByteHolder*> larger;
    for (ByteHolder* const holder : holders_) {
      if (holder->held_ > asking.held_) larger.push_back(holder);
    }
    std::ranges::sort(larger, std::ranges::greater(), &ByteHolder::held_);
    const bool freed = std::ranges::any_of(larger, [](ByteHolder* h) { return h->GiveUp(); });
    if (!freed) return false;
  }
  return true;
}

ByteHolder::ByteHolder(ByteBudget& budget) : budget_(budget) { budget_.holders_.push_back(this); }

ByteHolder::~ByteHolder() {
  budget_.used_ -= held_;
  std::erase(budget_.holders_, this);
}

bool ByteHolder::Hold(size_t bytes) {
  const size_t counted = Counted(bytes);
  if (counted > held_ && !budget_.MakeRoom(*this, counted)) return false;
  HoldAnyway(bytes);
  return true;
}

void ByteHolder::HoldAnyway(size_t bytes) {
  const size_t counted = Counted(bytes);
  budget_.used_ += counted - held_;
  held_ = counted;
}

}  // namespace fathom
