// Which two tokens become one, and which two before which others?
//
// A pair and its rank are packed into 8 bytes: what is looked up several times per byte of text has
// to stay in the processor's cache.
//
// Memory   11 to 22 bytes per merge, and 4.
// Threads  Immutable once filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/tokens/token.h"

namespace fathom {

class MergeTable {
 public:
  static constexpr int kTokenBits = 22;
  static constexpr int kRankBits = 20;
  static constexpr uint32_t kNever = (1 << kRankBits) - 1;  // the rank of what stays two
  static constexpr size_t kMaxMerges = kNever;
  static constexpr size_t kMaxTokens = size_t{1} << kTokenBits;

  explicit MergeTable(size_t merges);

  // The next merge: its rank is the number of those before it. A later rank of the same pair
  // replaces the earlier.
  void Add(TokenId left, TokenId right, TokenId token);

  // The lower the sooner.
  uint32_t RankOf(TokenId left, TokenId right) const {
    const uint64_t pair = Key(left, right);
    for (size_t at = Home(pair);; at = (at + 1) & mask_) {
      const uint64_t slot = slots_[at];
      // An empty slot has this rank, and every pair of bits.
      if (slot >> kRankBits == pair || slot == kEmpty) return slot & kNever;
    }
  }
  TokenId TokenOf(uint32_t rank) const { return tokens_[rank]; }
  // TokenOf() will be asked for it soon, perhaps.
  void Expect(uint32_t rank) const { __builtin_prefetch(tokens_.data() + rank); }

 private:
  static constexpr uint64_t kEmpty = 0xffffffffffffffff;

  static uint64_t Key(TokenId left, TokenId right) { return uint64_t{left} << kTokenBits | right; }
  size_t Home(uint64_t pair) const { return (pair * 0x9e3779b97f4a7c15) >> shift_; }

  std::vector<uint64_t> slots_;
  std::vector<TokenId> tokens_;  // by rank
  size_t mask_;
  int shift_;
};

}  // namespace fathom
