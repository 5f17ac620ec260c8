#include "text/tokens/prefix_keys.h"

#include <algorithm>

namespace fathom {

size_t PrefixKeys::bytes() const {
  size_t bytes = sizeof(*this) + marks.capacity() * sizeof(PromptMark);
  for (const Chain& chain : chains) {
    bytes += sizeof(chain) + chain.keys.capacity() * sizeof(uint64_t);
  }
  return bytes;
}

std::span<const PromptMark> KnownPrefix::Marks() const {
  if (!keys) return {};
  const auto end = std::ranges::upper_bound(keys->marks, tokens, {}, &PromptMark::tokens);
  return {keys->marks.begin(), end};
}

std::span<const uint64_t> KnownPrefix::Chain(BlockShape shape) const {
  if (!keys) return {};
  for (const PrefixKeys::Chain& chain : keys->chains) {
    if (!(chain.shape == shape)) continue;
    return std::span(chain.keys).first(std::min(chain.keys.size(), shape.BlocksIn(tokens)));
  }
  return {};
}

}  // namespace fathom
