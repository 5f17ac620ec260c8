// Which rank of which worker?
#pragma once

#include <cstdint>

namespace fathom {

// Identifies a rank for readers of the index.
struct RankLabel {
  uint64_t worker = 0;
  uint32_t dp_rank = 0;
  friend bool operator==(const RankLabel&, const RankLabel&) = default;
};

}  // namespace fathom
