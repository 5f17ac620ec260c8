// What mends it, in the words of that engine?
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/findings/finding.h"
#include "engine/engine_kind.h"

namespace fathom {

// Which router it is that the engine works with.
enum class RouterKind : uint8_t { kUnknown, kFathom, kDynamo };

struct Patient {
  EngineKind engine = EngineKind::kUnknown;
  RouterKind router = RouterKind::kUnknown;
  uint32_t engine_block_size = 0;  // 0: not known
  uint32_t router_block_size = 0;
  bool divided = false;  // other engines of the router have another size than this one
};

// The best first; each complete without the others. Diffs are left to whoever has read a file.
std::vector<Fix> RemediesFor(FindingId id, const Patient& patient);

}  // namespace fathom
