// One event of TensorRT-LLM's polled JSON, parsed but not yet checked against earlier events.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "router/events/cache_event.h"

namespace fathom {

struct TrtllmBlock {
  uint64_t hash = 0;
  Tier tier = Tier::kDevice;
  std::vector<TokenId> tokens;
  std::vector<uint64_t> keys;  // identifiers that take the place of tokens
};

struct TrtllmStored {
  std::optional<uint64_t> parent;
  std::vector<TrtllmBlock> blocks;
};

struct TrtllmRemoved {
  std::vector<uint64_t> hashes;
};

struct TrtllmMoved {
  uint64_t hash = 0;
  Tier from = Tier::kDevice;
  Tier to = Tier::kDevice;
};

// The pool's size and its window, without blocks. Also used for events that cannot be read, and for
// changes of a block's priority.
struct TrtllmOther {};

struct TrtllmEvent {
  uint64_t id = 0;
  uint32_t rank = 0;    // 0 if the engine reports none
  uint64_t window = 0;  // tokens; 0 if the engine reports none
  uint32_t group = 0;
  std::variant<TrtllmOther, TrtllmStored, TrtllmRemoved, TrtllmMoved> data;
};

// Reads number and rank, which every kind of event must have.
Result<TrtllmEvent> ReadTrtllmHead(const Json& json);
// Reads the other fields.
Result<> ReadTrtllmData(const Json& json, TrtllmEvent& event);

}  // namespace fathom
