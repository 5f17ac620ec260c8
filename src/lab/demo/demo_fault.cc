#include "lab/demo/demo_fault.h"

#include <utility>

namespace fathom {
namespace {

// The router judges several times a second. Trust right after a repair may be the judgement from
// before the fault.
constexpr Duration kJudged = std::chrono::seconds(2);

}  // namespace

void FaultMoment::Break(std::string name, double reused, uint64_t recomputed_so_far, Duration now) {
  *this = {};
  stage = FaultStage::kBroken;
  worker = std::move(name);
  broken_at = now;
  reused_before = reused;
  recomputed_at_break_ = recomputed_so_far;
}

void FaultMoment::Repair(Duration now) {
  if (!losing()) return;
  stage = FaultStage::kRepaired;
  repaired_at = now;
}

void FaultMoment::Look(std::string_view doubt, uint64_t recomputed_so_far, Duration now) {
  if (stage == FaultStage::kNone || stage == FaultStage::kTrusted) return;
  recomputed = recomputed_so_far - recomputed_at_break_;
  if (!doubt.empty()) {
    cause = doubt;
    if (stage == FaultStage::kBroken) stage = FaultStage::kDoubted;
  } else if (stage == FaultStage::kRepaired && now - repaired_at >= kJudged) {
    stage = FaultStage::kTrusted;
    trusted_at = now;
  }
}

}  // namespace fathom
