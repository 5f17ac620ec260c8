#include "router/fleet/engine_speed.h"

#include "router/fleet/prefill_work.h"

namespace fathom {
namespace {

constexpr double kFading = 0.99;
// The assumed speed weighs as much as 8 observations of 1,024 tokens.
constexpr double kPriorWork = 8 * 1024;

}  // namespace

void EngineSpeed::Observe(double work, Duration took) {
  if (work <= 0 || took <= Duration::zero()) return;
  const std::lock_guard lock(mutex_);
  work_ = work_ * kFading + work;
  took_ = took_ * kFading + static_cast<double>(took.count());
  const double assumed = static_cast<double>(Duration(kUsualUnit).count());
  unit_.store((took_ + kPriorWork * assumed) / (work_ + kPriorWork), std::memory_order_relaxed);
}

}  // namespace fathom
