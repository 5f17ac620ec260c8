// One event of TensorRT-LLM's polled JSON, read but not yet judged.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "events/cache_event.h"

namespace fathom {

struct TrtllmBlock {
  uint64_t hash = 0;
  Tier tier = Tier::kDevice;
  std::vector<TokenId> tokens;
  std::vector<uint64_t> keys;  // what stands in place of tokens
};

struct TrtllmStored {
  std::optional<uint64_t> parent;
  std::vector<TrtllmBlock> blocks;
};

struct TrtllmRemoved {
  std::vector<uint64_t> hashes;
};

// A block that lies elsewhere now.
struct TrtllmMoved {
  uint64_t hash = 0;
  Tier from = Tier::kDevice;
  Tier to = Tier::kDevice;
};

// Says how large the pool is and for which window, and nothing about blocks. Also stands for all
// that is not known here, and for updates of a block's priority.
struct TrtllmOther {
  bool known = true;
};

struct TrtllmEvent {
  uint64_t id = 0;
  uint32_t rank = 0;    // 0 where the engine names none
  uint64_t window = 0;  // tokens; 0 where the engine names none
  uint32_t group = 0;
  std::variant<TrtllmOther, TrtllmStored, TrtllmRemoved, TrtllmMoved> data;
};

// Number and rank, which an event must have whatever is in it.
Result<TrtllmEvent> ReadTrtllmHead(const Json& json);
// The rest.
Result<> ReadTrtllmData(const Json& json, TrtllmEvent& event);

}  // namespace fathom
