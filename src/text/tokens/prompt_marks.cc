#include "text/tokens/prompt_marks.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fathom {

void MarkPrompt(std::span<const TokenId> tokens, uint64_t seed, std::vector<PromptMark>& marks,
                std::span<const PromptMark> known) {
  marks.assign(known.begin(), known.end());
  uint64_t key = known.empty() ? seed : known.back().key;
  uint32_t from = known.empty() ? 0 : known.back().tokens;
  for (uint32_t to = from == 0 ? kFirstMark : NextMark(from); to <= tokens.size();
       from = to, to = NextMark(to)) {
    const auto part = tokens.subspan(from, to - from);
    key = XXH3_64bits_withSeed(part.data(), part.size_bytes(), key);
    marks.push_back({key, to});
  }
}

}  // namespace fathom
