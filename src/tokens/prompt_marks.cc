#include "tokens/prompt_marks.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fathom {

void MarkPrompt(std::span<const TokenId> tokens, uint64_t seed, std::vector<PromptMark>& marks) {
  marks.clear();
  uint64_t key = seed;
  uint32_t from = 0;
  for (uint32_t to = kFirstMark; to <= tokens.size(); from = to, to = NextMark(to)) {
    const auto part = tokens.subspan(from, to - from);
    key = XXH3_64bits_withSeed(part.data(), part.size_bytes(), key);
    marks.push_back({key, to});
  }
}

}  // namespace fathom
