// What was computed of a prompt, for the next one that begins alike: its marks, and its blocks'
// keys for each way of cutting it into blocks.
//
// Threads  Immutable once shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "text/tokens/block_hash.h"
#include "text/tokens/prompt_marks.h"

namespace fathom {

struct PrefixKeys {
  struct Chain {
    BlockShape shape;
    std::vector<uint64_t> keys;
  };
  std::vector<PromptMark> marks;
  std::vector<Chain> chains;  // one per shape

  size_t bytes() const;
};

// The first `tokens` of a prompt are those that `keys` were computed from, and so is their
// namespace.
struct KnownPrefix {
  std::shared_ptr<const PrefixKeys> keys;  // null: nothing is known
  size_t tokens = 0;

  std::span<const PromptMark> Marks() const;
  std::span<const uint64_t> Chain(BlockShape shape) const;
};

}  // namespace fathom
