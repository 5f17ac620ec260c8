#include "text/tokenizer/merge_table.h"

#include <bit>

#include "base/check.h"

namespace fathom {

MergeTable::MergeTable(size_t merges)
    : slots_(std::bit_ceil(merges + merges / 3 + 2), kEmpty),
      mask_(slots_.size() - 1),
      shift_(64 - std::countr_zero(slots_.size())) {
  tokens_.reserve(merges);
}

void MergeTable::Add(TokenId left, TokenId right, TokenId token) {
  CHECK(tokens_.size() < kMaxMerges && left < kMaxTokens && right < kMaxTokens);
  const uint64_t pair = Key(left, right);
  size_t at = Home(pair);
  while (slots_[at] != kEmpty && slots_[at] >> kRankBits != pair) at = (at + 1) & mask_;
  slots_[at] = pair << kRankBits | tokens_.size();
  tokens_.push_back(token);
}

}  // namespace fathom
