// What do the other replicas of this router have in flight on a rank?
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace fathom {

// The sum over all others (router/replicas/foreign_loads.h).
struct ForeignLoad {
  double queued = 0;       // units of prefill work without a first byte
  double oldest = 0;       // of these, the largest that is in progress
  TimePoint busy_since{};  // when the prefill in progress on the rank began, as the last one knows
  uint64_t context = 0;    // tokens
  uint32_t requests = 0;
  uint32_t waiting = 0;  // of these, without a first byte
  friend bool operator==(const ForeignLoad&, const ForeignLoad&) = default;
};

}  // namespace fathom
