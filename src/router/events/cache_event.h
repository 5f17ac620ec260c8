// A change of an engine's KV cache, in one form for all engines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "router/index/holding.h"
#include "text/tokens/block_hash.h"

namespace fathom {

struct StoredEvent {
  std::vector<uint64_t> hashes;    // the engine's block hashes; if fewer than the blocks of
                                   // `tokens`, the event does not show which blocks they are
  std::optional<uint64_t> parent;  // nullopt: the first block of `tokens` begins a prompt
  std::vector<TokenId> tokens;     // if `pairs`: one more than the blocks need
  uint32_t block_size = 0;
  Tier tier = Tier::kDevice;
  uint32_t group = 0;
  GroupKind kind = GroupKind::kFull;
  uint32_t window = 0;          // in tokens; only for a window group
  bool pairs = false;           // each position is a token and its successor (EAGLE)
  std::string lora;             // empty: none
  std::string salt;             // empty: none, or the same as the parent's
  std::vector<ExtraKey> extra;  // sorted by block, without duplicates
  friend bool operator==(const StoredEvent&, const StoredEvent&) = default;
};

struct RemovedEvent {
  std::vector<uint64_t> hashes;
  Tier tier = Tier::kDevice;
  uint32_t group = 0;
  friend bool operator==(const RemovedEvent&, const RemovedEvent&) = default;
};

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

// The changes of one scheduler step of one rank.
struct EventBatch {
  double timestamp = 0;          // unix seconds, by the engine's clock
  std::optional<uint32_t> rank;  // nullopt: the engine does not report it
  std::vector<CacheEvent> events;
  uint64_t ignored = 0;       // events without content
  uint64_t malformed = 0;     // events that were left out: invalid, or of an unknown type
  std::string first_problem;  // of the malformed events: "event 3: BlockStored: block_size: ..."
};

}  // namespace fathom
