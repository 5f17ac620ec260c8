// Consecutive blocks that an engine has just stored.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "router/index/holding.h"
#include "text/tokens/block_hash.h"

namespace fathom {

// One of a rank's caches.
struct CachePart {
  Tier tier = Tier::kDevice;
  uint32_t group = 0;
  friend bool operator==(const CachePart&, const CachePart&) = default;
};

struct StoredRun {
  std::optional<uint64_t> parent;    // engine hash of the parent block; nullopt: start of a prompt
  std::span<const uint64_t> hashes;  // the engine's; fewer than blocks: which ones is unknown
  std::span<const TokenId> tokens;   // of all blocks, in the rank's shape; or instead
  std::span<const uint64_t> locals;  // their local hashes
  std::span<const ExtraKey> extra;   // in order of blocks
  uint64_t seed = kKeySeed;          // of its namespace; with a parent the parent's applies
  CachePart part;
  GroupKind kind = GroupKind::kFull;
  uint32_t window = 0;  // tokens
};

}  // namespace fathom
