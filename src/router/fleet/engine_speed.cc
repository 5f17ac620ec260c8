#include "router/fleet/engine_speed.h"

#include <algorithm>

#include "router/fleet/prefill_work.h"

namespace fathom {
namespace {

constexpr double kFading = 0.99;
// The assumed speed weighs as much as 8 observations of 1,024 tokens.
constexpr double kPriorWork = 8 * 1024;
// Observations needed before a rank's own speed is used.
constexpr double kEnough = 20;
// Differences within this factor may be noise, or due to the mix of requests.
constexpr double kNotable = 2;
constexpr double kMostSlowness = 16;

}  // namespace

void EngineSpeed::Observe(double work, Duration took) {
  if (work <= 0 || took <= Duration::zero()) return;
  const std::lock_guard lock(mutex_);
  work_ = work_ * kFading + work;
  took_ = took_ * kFading + static_cast<double>(took.count());
  seen_ = seen_ * kFading + 1;
  const double assumed = static_cast<double>(Duration(kUsualUnit).count());
  unit_.store((took_ + kPriorWork * assumed) / (work_ + kPriorWork), std::memory_order_relaxed);
  weight_.store(seen_, std::memory_order_relaxed);
}

double EngineSpeed::SlownessBeside(const EngineSpeed& fleet) const {
  if (weight_.load(std::memory_order_relaxed) < kEnough) return 1;
  const double ratio = unit() / fleet.unit();
  return ratio < kNotable ? 1 : std::min(ratio, kMostSlowness);
}

}  // namespace fathom
