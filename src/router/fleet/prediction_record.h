// Does this rank find in its cache what its events reported?
//
// Keeps the last predictions of each prompt space with their outcomes. Persistent over-prediction
// is drift; the share of predicted tokens that was found is the rank's credit. The caller must have
// subtracted misses with a benign cause (evicted in the meantime, preempted).
//
// Finding more than predicted is harmless and has benign causes (lost events, other tiers). It is
// drift only if requests of one space show it and plain ones do not: then the engine shares blocks
// that the router keeps apart.
//
// Threads  One.
// Memory   kKept predictions per space.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "router/fleet/served_request.h"
#include "router/fleet/trust_evidence.h"

namespace fathom {

class PredictionRecord {
 public:
  static constexpr size_t kKept = 32;
  static constexpr size_t kEnough = 16;
  // Missing share of the predicted tokens above which a rank is doubted, and up to which it is
  // trusted again.
  static constexpr double kDoubt = 0.25;
  static constexpr double kTrust = 0.10;

  struct Outcome {
    uint32_t predicted = 0;  // tokens
    uint32_t cached = 0;
    uint32_t missing = 0;     // of the predicted ones, without a benign cause
    uint32_t unforeseen = 0;  // found, but not reported by any event
  };
  void Add(PromptSpace space, const Outcome& outcome);
  void Reset() { *this = {}; }

  std::optional<PredictionDrift> Look() const;
  // 0 to 1: the factor for predictions of such prompts.
  double Credit(PromptSpace space) const;

 private:
  struct Space {
    std::array<Outcome, kKept> kept{};
    uint64_t count = 0;
    bool less = false;  // doubted: found less than predicted
    bool more = false;  // doubted: found more than predicted
  };
  struct Sums {
    uint32_t requests = 0;
    uint64_t predicted = 0, cached = 0, missing = 0, unforeseen = 0;
    double missing_share() const;
    double unforeseen_share() const;
  };
  static Sums SumOf(const Space& space, size_t latest);
  void Judge(Space& space) const;
  PredictionDrift Describe(PromptSpace space, bool more) const;

  std::array<Space, kPromptSpaces> spaces_;
};

}  // namespace fathom
