// Which of these workers shall serve the request, when caches do not matter?
//
// A choice is a pure function of the candidates, the mode and the state of the chooser (whose turn
// it is, and a seeded generator), so that it can be repeated exactly. Modes that look at the prompt
// are Steering's (routing/steering.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/ids.h"
#include "base/random.h"

namespace fathom {

enum class RouterMode : uint8_t {
  kRoundRobin,
  kRandom,
  kPowerOfTwo,
  kLeastLoaded,
  kDirect,
  kKv,
  kPrefixHash,
};

std::optional<RouterMode> ParseRouterMode(std::string_view name);
std::string_view Name(RouterMode mode);
// Whether the mode chooses by what is in the prompt.
constexpr bool WantsTokens(RouterMode mode) {
  return mode == RouterMode::kKv || mode == RouterMode::kPrefixHash;
}

struct Candidate {
  WorkerId id;
  uint32_t in_flight = 0;
};

// Whose turn it is. Shared by all loops, because a client that sends one request after the other
// over fresh connections expects round-robin to go round, whichever loop each lands on.
using Turn = std::atomic<uint64_t>;

// One per loop.
class Chooser {
 public:
  Chooser(RouterMode mode, uint64_t seed, Turn& turn) : mode_(mode), random_(seed), turn_(turn) {}

  RouterMode mode() const { return mode_; }

  // Position of the chosen candidate; there must be at least one. In direct mode the request names
  // its worker; if it does not, or for a retry, the choice falls back to round-robin. Modes that
  // want tokens fall back to the least loaded, for requests that have none.
  size_t Choose(std::span<const Candidate> candidates);

 private:
  size_t LeastLoaded(std::span<const Candidate> candidates);
  size_t PowerOfTwo(std::span<const Candidate> candidates);

  const RouterMode mode_;
  Random random_;
  Turn& turn_;
};

}  // namespace fathom
