#include "text/tokenizer/joined_characters.h"

#include <utility>

#include "text/unicode/utf8.h"

namespace fathom {

void JoinedCharacters::Add(std::string_view token) {
  if (token.empty()) return;
  CodePoint left = FirstCodePoint(token);
  for (token.remove_prefix(left.length); !token.empty(); token.remove_prefix(left.length)) {
    const CodePoint right = FirstCodePoint(token);
    const uint64_t key = Key(std::exchange(left, right).value, right.value);
    const auto first = static_cast<uint32_t>(key >> 32);
    if ((first | right.value) < kAscii) {
      ascii_.set(first * kAscii + right.value);
      continue;
    }
    const size_t at = Find(key);
    if (slots_[at] != kEmpty) continue;
    slots_[at] = key;
    if (2 * ++size_ > slots_.size()) Grow();
  }
}

size_t JoinedCharacters::Find(uint64_t key) const {
  const uint64_t hash = key * 0x9e3779b97f4a7c15;
  size_t at = (hash ^ hash >> 32) & (slots_.size() - 1);
  while (slots_[at] != kEmpty && slots_[at] != key) at = (at + 1) & (slots_.size() - 1);
  return at;
}

void JoinedCharacters::Grow() {
  const std::vector<uint64_t> old = std::exchange(slots_, {});
  slots_.assign(2 * old.size(), kEmpty);
  for (const uint64_t key : old) {
    if (key != kEmpty) slots_[Find(key)] = key;
  }
}

}  // namespace fathom
