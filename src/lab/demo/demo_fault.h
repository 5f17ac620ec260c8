// What became of the fault that the demo injects into one worker's KV events? Broken, doubted,
// repaired, trusted again: when each happened, and what it cost meanwhile.
//
// Pure: told what was done and what the router's trust is, it keeps the story.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace fathom {

enum class FaultStage : uint8_t {
  kNone,      // nothing was broken
  kBroken,    // events are being lost, and the router has not noticed
  kDoubted,   // events are being lost, and the router doubts the worker
  kRepaired,  // no more events are lost; the doubt has not ended
  kTrusted,   // the router trusts the worker again
};

struct FaultMoment {
  FaultStage stage = FaultStage::kNone;
  std::string worker;
  std::string cause;  // of the doubt
  Duration broken_at{};
  Duration repaired_at{};
  Duration trusted_at{};
  double reused_before = 0;  // share of prompt tokens, when it was broken
  uint64_t recomputed = 0;   // tokens, from then on until it was trusted again

  bool losing() const { return stage == FaultStage::kBroken || stage == FaultStage::kDoubted; }

  // `recomputed_so_far`: of the side, since the demo began.
  void Break(std::string name, double reused, uint64_t recomputed_so_far, Duration now);
  void Repair(Duration now);
  // What the router thinks of the worker: the cause of its doubt, or empty.
  void Look(std::string_view doubt, uint64_t recomputed_so_far, Duration now);

 private:
  uint64_t recomputed_at_break_ = 0;
};

}  // namespace fathom
