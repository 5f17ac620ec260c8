// Which tokens did this word have when it was met last?
//
// Memory   kSlots slots. A word takes the place of another one that falls on the same slot.
// Threads  One thread's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokens/token.h"

namespace fathom {

// Words of at most 8 * kParts bytes and kTokens tokens.
template <size_t kParts, size_t kTokens, size_t kSlots>
class WordMemory {
 public:
  static constexpr size_t kLongest = 8 * kParts;
  static constexpr size_t kMostTokens = kTokens;

  // Words of the same length are the same when their keys are.
  struct Key {
    std::array<uint64_t, kParts> parts{};
    uint64_t hash = 0;
    uint16_t length = 0;
  };
  // Of a word that is not empty and not longer than kLongest.
  static Key KeyOf(std::string_view word);

  WordMemory() : slots_(kSlots) {}

  // Appends its tokens; false if it is not known.
  bool Recall(const Key& key, std::vector<TokenId>& out) const {
    const Slot& slot = slots_[key.hash % kSlots];
    if (slot.parts != key.parts || slot.length != key.length) return false;
    out.insert(out.end(), slot.tokens.begin(), slot.tokens.begin() + slot.count);
    return true;
  }

  // At most kMostTokens.
  void Keep(const Key& key, std::span<const TokenId> tokens) {
    Slot& slot = slots_[key.hash % kSlots];
    slot.parts = key.parts;
    slot.length = key.length;
    slot.count = static_cast<uint16_t>(tokens.size());
    std::ranges::copy(tokens, slot.tokens.begin());
  }

 private:
  struct Slot {
    std::array<uint64_t, kParts> parts{};
    uint16_t length = 0;  // 0: empty
    uint16_t count = 0;
    std::array<TokenId, kTokens> tokens{};
  };
  static_assert((kSlots & (kSlots - 1)) == 0);

  std::vector<Slot> slots_;
};

// Whole loads, the last of which may overlap the one before.
template <size_t kParts, size_t kTokens, size_t kSlots>
typename WordMemory<kParts, kTokens, kSlots>::Key WordMemory<kParts, kTokens, kSlots>::KeyOf(
    std::string_view word) {
  const auto load = [&](size_t at, auto value) {
    std::memcpy(&value, word.data() + at, sizeof(value));
    return uint64_t{value};
  };
  const size_t size = word.size();
  Key key{.length = static_cast<uint16_t>(size)};
  if (size >= 8) {
    size_t part = 0;
    for (size_t at = 0; at + 8 < size; at += 8) key.parts[part++] = load(at, uint64_t{});
    key.parts[part] = load(size - 8, uint64_t{});
  } else if (size >= 4) {
    key.parts[0] = load(0, uint32_t{}) << 32 | load(size - 4, uint32_t{});
  } else {
    key.parts[0] =
        load(0, uint8_t{}) | load(size / 2, uint8_t{}) << 8 | load(size - 1, uint8_t{}) << 16;
  }
  uint64_t mixed = size;
  for (const uint64_t part : key.parts) {
    mixed = (mixed ^ part) * 0x9e3779b97f4a7c15;
    mixed ^= mixed >> 32;
  }
  key.hash = mixed;
  return key;
}

}  // namespace fathom
