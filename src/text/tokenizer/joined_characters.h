// Can merges join these two neighbouring characters?
//
// A model without a word pattern sees a whole text as one word. It can still be cut, exactly, where
// no merge can cross: between two characters that stand side by side in no token that merges make.
// While merges run, every symbol is the text of a token, so a symbol that crossed the place would
// have both characters side by side in its text. No symbol ever does, so each merge happens on one
// side or the other, and each side's merges depend on that side alone: the lowest rank of a side,
// leftmost first, is next on that side whatever happens on the other.
//
// Memory   16 bytes per pair of neighbours.
// Threads  Immutable once filled.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fathom {

class JoinedCharacters {
 public:
  JoinedCharacters() : slots_(1024, kEmpty) {}

  // All neighbours in the text of a token.
  void Add(std::string_view token);

  bool Contains(uint32_t left, uint32_t right) const {
    if ((left | right) < kAscii) return ascii_[left * kAscii + right];
    return slots_[Find(Key(left, right))] != kEmpty;
  }

 private:
  static constexpr uint32_t kAscii = 128;
  static constexpr uint64_t kEmpty = 0xffffffffffffffff;

  static uint64_t Key(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  // Where it is, or where it would be.
  size_t Find(uint64_t key) const;
  void Grow();

  std::bitset<kAscii * kAscii> ascii_;
  std::vector<uint64_t> slots_;
  size_t size_ = 0;
};

}  // namespace fathom
