// What an engine says about its KV cache, before anybody writes it down in an engine's own dialect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "text/tokens/token.h"

namespace fathom {

using BlockHash = uint64_t;  // the engine's own name for a block and everything before it

struct BlocksStored {
  std::vector<BlockHash> hashes;
  std::optional<BlockHash> parent;  // nothing: the first of these is the first of a prompt
  std::vector<TokenId> tokens;      // of these blocks, in order
  uint32_t block_size = 0;
  std::string lora;  // empty: none
  std::string salt;  // of the first block of a prompt; empty: none
  friend bool operator==(const BlocksStored&, const BlocksStored&) = default;
};

struct BlockRemoved {
  BlockHash hash;
  friend bool operator==(const BlockRemoved&, const BlockRemoved&) = default;
};

struct AllBlocksCleared {
  friend bool operator==(const AllBlocksCleared&, const AllBlocksCleared&) = default;
};

using KvEvent = std::variant<BlocksStored, BlockRemoved, AllBlocksCleared>;

}  // namespace fathom
