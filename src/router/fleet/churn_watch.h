// Are this rank's cached blocks evicted before they are requested again?
//
// Looks at the prefixes that were requested again within the last one to two minutes, and how much
// of them was still cached. Some eviction is normal. When nearly nothing survives until it is
// requested again, the cache is too small for cache-aware routing to help.
//
// Threads  One.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "router/fleet/trust_evidence.h"

namespace fathom {

class ChurnWatch {
 public:
  static constexpr Duration kWindow = std::chrono::minutes(1);  // covers one to two of them
  static constexpr Duration kNotBefore = std::chrono::seconds(10);
  static constexpr uint32_t kRequests = 32;
  static constexpr double kDoubt = 0.9;  // evicted share of the returned tokens
  static constexpr double kTrust = 0.7;

  // A prompt came back of which the rank has evicted `evicted` tokens and still holds `reused`.
  void Returned(uint64_t evicted, uint64_t reused, TimePoint now);
  // Total blocks stored and removed, and the number held now.
  void Heard(uint64_t stored, uint64_t removed, uint64_t held, TimePoint now);

  std::optional<Churn> Look(TimePoint now);

 private:
  struct Window {
    TimePoint since{};
    uint32_t requests = 0;
    uint64_t evicted = 0, reused = 0;        // tokens
    uint64_t stored_at = 0, removed_at = 0;  // counts at its begin
  };
  void Turn(TimePoint now);
  Churn Sum(TimePoint now) const;

  std::array<Window, 2> windows_;  // previous, current
  uint64_t stored_ = 0, removed_ = 0, held_ = 0;
  bool begun_ = false;
  bool churns_ = false;
};

}  // namespace fathom
