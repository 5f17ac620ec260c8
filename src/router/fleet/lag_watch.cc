#include "router/fleet/lag_watch.h"

#include <utility>

namespace fathom {
namespace {

// Clocks that differ by less than this are considered synchronized.
constexpr Duration kAgree = std::chrono::milliseconds(500);

}  // namespace

Duration LagWatch::ByTimestamp(Duration offset, TimePoint now) {
  if (now - window_ >= kWindow) {
    smallest_before_ = std::exchange(smallest_, std::nullopt);
    window_ = now;
  }
  smallest_ = std::min(smallest_.value_or(offset), offset);
  const Duration base = std::min(*smallest_, smallest_before_.value_or(*smallest_));
  const bool agree = base > -kAgree && base < kAgree;
  const Duration lag = std::max(agree ? offset : offset - base, Duration::zero());
  Take(lag, false);
  return lag;
}

std::optional<LateEvents> LagWatch::Look(Duration limit) {
  if (measured_) {
    const bool above = latest_.lag > limit;
    in_a_row_ = above == late_ ? 0 : in_a_row_ + 1;
    if (above) worst_ = latest_;
    if (in_a_row_ >= kLooks) {
      late_ = above;
      in_a_row_ = 0;
    }
    measured_ = false;
    latest_ = {};
  }
  if (!late_) return std::nullopt;
  worst_.limit = limit;
  return worst_;
}

}  // namespace fathom
