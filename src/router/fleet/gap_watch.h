// Were batches of this rank's events lost recently and not recovered?
//
// After a loss the rank's entries are cleared and learned again, so the index has less than the
// rank holds, never more. The rank is doubted until kWhole has passed without a loss.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "router/fleet/trust_evidence.h"

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
