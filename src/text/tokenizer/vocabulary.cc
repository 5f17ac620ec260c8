#include "text/tokenizer/vocabulary.h"

#include <xxhash.h>

#include <algorithm>

namespace fathom {
namespace {

uint64_t HashOf(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

bool Vocabulary::Add(TokenId id, std::string_view text) {
  if (id < spans_.size() && spans_[id].length != kNoLength) return false;
  if (Find(text) != kNone) return false;
  if (2 * (size_ + 1) > slots_.size()) Grow();
  if (id >= spans_.size()) spans_.resize(id + 1);
  spans_[id] = {static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(text.size())};
  texts_ += text;
  Place(id);
  ++size_;
  return true;
}

TokenId Vocabulary::Find(std::string_view text) const {
  if (slots_.empty()) return kNone;
  const uint64_t hash = HashOf(text);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.id == kNone) return kNone;
    if (slot.tag == tag && Text(slot.id) == text) return slot.id;
  }
}

std::optional<std::string_view> Vocabulary::TextOf(TokenId id) const {
  if (id >= spans_.size() || spans_[id].length == kNoLength) return std::nullopt;
  return Text(id);
}

void Vocabulary::Place(TokenId id) {
  const uint64_t hash = HashOf(Text(id));
  size_t at = hash & (slots_.size() - 1);
  while (slots_[at].id != kNone) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = {static_cast<uint32_t>(hash >> 32), id};
}

void Vocabulary::Grow() {
  slots_.assign(std::max<size_t>(64, 2 * slots_.size()), {});
  for (TokenId id = 0; id < spans_.size(); ++id) {
    if (spans_[id].length != kNoLength) Place(id);
  }
}

}  // namespace fathom
