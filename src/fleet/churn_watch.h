// Is what this rank keeps evicted before it is wanted again?
//
// Looks at the prefixes that came back within the last minute or two: how much of them was still
// there. Some eviction is how caches work; when nearly nothing survives until it is wanted, memory
// is too short for cache-aware routing to be of use.
//
// Threads  One.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "fleet/trust_evidence.h"

namespace fathom {

class ChurnWatch {
 public:
  static constexpr Duration kWindow = std::chrono::minutes(1);  // at least one, at most two of them
  static constexpr Duration kNotBefore = std::chrono::seconds(10);
  static constexpr uint32_t kRequests = 32;
  static constexpr double kDoubt = 0.9;  // of what came back, gone
  static constexpr double kTrust = 0.7;

  // A prompt came of which the rank had held `evicted` tokens, and still held `reused`.
  void Returned(uint64_t evicted, uint64_t reused, TimePoint now);
  // Counts of blocks, and how many are held.
  void Heard(uint64_t stored, uint64_t removed, uint64_t held, TimePoint now);

  std::optional<Churn> Look(TimePoint now);

 private:
  struct Window {
    TimePoint since{};
    uint32_t requests = 0;
    uint64_t evicted = 0, reused = 0;        // tokens
    uint64_t stored_at = 0, removed_at = 0;  // counts when it began
  };
  void Turn(TimePoint now);
  Churn Sum(TimePoint now) const;

  std::array<Window, 2> windows_;  // the one before, and this one
  uint64_t stored_ = 0, removed_ = 0, held_ = 0;
  bool begun_ = false;
  bool churns_ = false;
};

}  // namespace fathom
