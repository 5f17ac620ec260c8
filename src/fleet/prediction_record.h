// Does this rank find in its cache what its events say?
//
// The last predictions of each prompt space, with what became of them. Persistent over-prediction
// is drift; the share that was borne out is what the rank's word is worth. What an honest engine
// does not find (evicted meanwhile, preempted) must have been taken off before.
//
// Finding more than predicted is no harm, and has honest reasons (events lost, other tiers). It is
// drift only where requests of one space show it and plain ones do not: then the engine keeps
// together what we keep apart.
//
// Threads  One.
// Memory   kKept predictions per space.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "fleet/served_request.h"
#include "fleet/trust_evidence.h"

namespace fathom {

class PredictionRecord {
 public:
  static constexpr size_t kKept = 32;
  static constexpr size_t kEnough = 16;
  // Of what was predicted, the share that must be missing for doubt, and may be for trust.
  static constexpr double kDoubt = 0.25;
  static constexpr double kTrust = 0.10;

  struct Outcome {
    uint32_t predicted = 0;  // tokens
    uint32_t cached = 0;
    uint32_t missing = 0;     // of the predicted ones, without an honest reason
    uint32_t unforeseen = 0;  // found, and no event had told of it
  };
  void Add(PromptSpace space, const Outcome& outcome);
  void Reset() { *this = {}; }

  std::optional<PredictionDrift> Look() const;
  // 0 to 1: what a prediction for such prompts is worth.
  double Credit(PromptSpace space) const;

 private:
  struct Space {
    std::array<Outcome, kKept> kept{};
    uint64_t count = 0;
    bool less = false;  // it is doubted
    bool more = false;
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
