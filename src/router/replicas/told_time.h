// How long is this, as replicas tell it?
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace fathom {

// In whole milliseconds: 0 if it is negative, and at most what the field holds.
inline uint32_t ToldMs(Duration duration) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<uint32_t>(std::clamp<int64_t>(count, 0, UINT32_MAX));
}

}  // namespace fathom
