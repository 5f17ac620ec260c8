// Which prompts begin alike, whatever the block size?
//
// A prompt is marked at fixed places: every 64 tokens at first, then at distances that grow with
// the place, so that a hundred marks reach through a hundred thousand tokens and the deepest common
// mark of two prompts is within a sixteenth of where they part. Two prompts share a mark exactly
// when they share all tokens up to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "text/tokens/token.h"

namespace fathom {

struct PromptMark {
  uint64_t key = 0;     // of everything up to it
  uint32_t tokens = 0;  // how many that is
  friend bool operator==(const PromptMark&, const PromptMark&) = default;
};

constexpr uint32_t kFirstMark = 64;

// The place of the mark after the one at `tokens`.
constexpr uint32_t NextMark(uint32_t tokens) {
  return tokens + std::max(kFirstMark, tokens / 16 / kFirstMark * kFirstMark);
}

// Replaces what is in `marks`. `seed` keeps namespaces apart. `known` are the first marks of the
// same tokens and seed.
void MarkPrompt(std::span<const TokenId> tokens, uint64_t seed, std::vector<PromptMark>& marks,
                std::span<const PromptMark> known = {});

}  // namespace fathom
