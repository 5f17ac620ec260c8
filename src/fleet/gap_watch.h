// Were batches of this rank's events lost for good, just now?
//
// After a loss the rank is forgotten and learnt anew: it claims less than it holds, never more. It
// is doubted until it has been whole for a while.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "fleet/trust_evidence.h"

namespace fathom {

class GapWatch {
 public:
  static constexpr Duration kWhole = std::chrono::seconds(10);

  void Heard(uint64_t lost, uint64_t gaps, uint64_t repaired, TimePoint now) {
    if (lost > counts_.lost) last_ = now;
    counts_ = {.lost = lost, .gaps = gaps, .repaired = repaired};
  }

  std::optional<LostBatches> Look(TimePoint now) const {
    if (!last_ || now - *last_ >= kWhole) return std::nullopt;
    return counts_;
  }

 private:
  LostBatches counts_;
  std::optional<TimePoint> last_;
};

}  // namespace fathom
