// What an engine says about its KV cache, in one form for all engines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "index/holding.h"
#include "tokens/block_hash.h"

namespace fathom {

struct StoredEvent {
  std::vector<uint64_t> hashes;    // the engine's names; may be fewer than the blocks of `tokens`,
                                   // then they name the last ones
  std::optional<uint64_t> parent;  // nothing: the first block of `tokens` begins a prompt
  std::vector<TokenId> tokens;     // with pairs: one more than the blocks need
  uint32_t block_size = 0;
  Tier tier = Tier::kDevice;
  uint32_t group = 0;
  GroupKind kind = GroupKind::kFull;
  uint32_t window = 0;          // tokens, of a window group
  bool pairs = false;           // each position is a token and its successor (EAGLE)
  std::string lora;             // empty: none
  std::string salt;             // empty: none, or the parent's
  std::vector<ExtraKey> extra;  // by block, each once
  friend bool operator==(const StoredEvent&, const StoredEvent&) = default;
};

struct RemovedEvent {
  std::vector<uint64_t> hashes;
  Tier tier = Tier::kDevice;
  uint32_t group = 0;
  friend bool operator==(const RemovedEvent&, const RemovedEvent&) = default;
};

// A block has changed its tier.
struct MovedEvent {
  uint64_t hash = 0;
  Tier from = Tier::kDevice;
  Tier to = Tier::kDevice;
  uint32_t group = 0;
  friend bool operator==(const MovedEvent&, const MovedEvent&) = default;
};

struct ClearedEvent {
  friend bool operator==(const ClearedEvent&, const ClearedEvent&) = default;
};

using CacheEvent = std::variant<StoredEvent, RemovedEvent, MovedEvent, ClearedEvent>;

// What one scheduler step of one rank did.
struct EventBatch {
  double timestamp = 0;          // unix seconds, the engine's clock
  std::optional<uint32_t> rank;  // nothing: the engine does not say
  std::vector<CacheEvent> events;
  uint64_t ignored = 0;       // events of kinds that are not known here, or with nothing in them
  uint64_t malformed = 0;     // events that were left out because they make no sense
  std::string first_problem;  // of the malformed ones: "event 3: BlockStored: block_size: ..."
};

}  // namespace fathom
