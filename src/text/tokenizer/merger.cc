#include "text/tokenizer/merger.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>

namespace fathom {

void Merger::Run(std::vector<TokenId>& symbols) {
  if (symbols.size() < 2) return;
  symbols.size() <= kFew ? RunFew(symbols) : RunMany(symbols);
}

// Each place has its pair's rank and, below it, the place itself: the smallest of these numbers is
// the leftmost pair of the lowest rank, and finding it is a loop without branches.
void Merger::RunFew(std::vector<TokenId>& symbols) const {
  constexpr int kPlaceBits = 6;
  constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
  static_assert(kFew <= size_t{1} << kPlaceBits && MergeTable::kRankBits + kPlaceBits < 31);
  const auto count = static_cast<uint32_t>(symbols.size());
  std::array<int32_t, kFew> order;
  uint64_t alive = ~uint64_t{0} >> (kFew - count);
  const auto rank = [&](uint32_t left, uint32_t right) {
    const uint32_t found = merges_.RankOf(symbols[left], symbols[right]);
    order[left] = kNone;
    if (found == MergeTable::kNever) return;
    merges_.Expect(found);
    order[left] = static_cast<int32_t>(found << kPlaceBits | left);
  };
  for (uint32_t i = 0; i + 1 < count; ++i) rank(i, i + 1);
  order[count - 1] = kNone;
  for (;;) {
    int32_t least = kNone;
    for (uint32_t i = 0; i < count; ++i) least = std::min(least, order[i]);
    if (least == kNone) break;
    const uint32_t at = static_cast<uint32_t>(least) & (kFew - 1);
    symbols[at] = merges_.TokenOf(static_cast<uint32_t>(least) >> kPlaceBits);
    uint64_t behind = alive & (~uint64_t{1} << at);
    const int gone = std::countr_zero(behind);
    order[static_cast<size_t>(gone)] = kNone;
    order[at] = kNone;
    behind &= behind - 1;
    alive &= ~(uint64_t{1} << gone);
    if (behind != 0) rank(at, static_cast<uint32_t>(std::countr_zero(behind)));
    const uint64_t before = alive & ~(~uint64_t{0} << at);
    if (before != 0) rank(static_cast<uint32_t>(std::bit_width(before)) - 1, at);
  }
  size_t kept = 0;
  for (; alive != 0; alive &= alive - 1) {
    symbols[kept++] = symbols[static_cast<size_t>(std::countr_zero(alive))];
  }
  symbols.resize(kept);
}

void Merger::RunMany(std::vector<TokenId>& symbols) {
  LinkAll(symbols);
  while (!heap_.empty()) {
    std::ranges::pop_heap(heap_, std::greater{});
    const uint64_t top = heap_.back();
    heap_.pop_back();
    const auto at = static_cast<uint32_t>(top);
    // Otherwise one of the two has merged with another since.
    if (links_[at].rank == top >> 32) Join(symbols, at);
  }
  uint32_t kept = 0;
  for (uint32_t at = 0; at != kNowhere; at = links_[at].after) symbols[kept++] = symbols[at];
  symbols.resize(kept);
}

void Merger::LinkAll(const std::vector<TokenId>& symbols) {
  const auto count = static_cast<uint32_t>(symbols.size());
  links_.resize(count);
  heap_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    links_[i] = {i - 1, last ? kNowhere : i + 1,
                 last ? MergeTable::kNever : merges_.RankOf(symbols[i], symbols[i + 1])};
    if (links_[i].rank != MergeTable::kNever) heap_.push_back(uint64_t{links_[i].rank} << 32 | i);
  }
  static_assert(uint32_t{0} - 1 == kNowhere);
  std::ranges::make_heap(heap_, std::greater{});
}

// The symbol at `at` and the one after it become one.
void Merger::Join(std::vector<TokenId>& symbols, uint32_t at) {
  Link& link = links_[at];
  symbols[at] = merges_.TokenOf(link.rank);
  links_[link.after].rank = MergeTable::kNever;
  link.after = links_[link.after].after;
  if (link.after != kNowhere) links_[link.after].before = at;
  Rank(symbols, at);
  if (link.before != kNowhere) Rank(symbols, link.before);
}

void Merger::Rank(const std::vector<TokenId>& symbols, uint32_t at) {
  Link& link = links_[at];
  link.rank = link.after == kNowhere ? MergeTable::kNever
                                     : merges_.RankOf(symbols[at], symbols[link.after]);
  if (link.rank == MergeTable::kNever) return;
  heap_.push_back(uint64_t{link.rank} << 32 | at);
  std::ranges::push_heap(heap_, std::greater{});
}

}  // namespace fathom
