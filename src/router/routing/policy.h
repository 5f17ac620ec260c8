// Which of these workers shall serve the request, in modes that ignore caches?
//
// Decide() is a pure function of the candidates, the mode and the state of the policy (the
// round-robin turn and a seeded generator), so that it can be repeated exactly. Modes that use the
// prompt are in Steering (router/routing/steering.h).
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
// Whether the mode decides by the prompt's tokens.
constexpr bool WantsTokens(RouterMode mode) {
  return mode == RouterMode::kKv || mode == RouterMode::kPrefixHash;
}

// Whether the mode decides, at least among several equal choices, by load.
constexpr bool UsesLoad(RouterMode mode) {
  return WantsTokens(mode) || mode == RouterMode::kLeastLoaded;
}

struct Candidate {
  WorkerId id;
  uint32_t in_flight = 0;
};

// The round-robin counter. Shared by all loops, because a client that sends each request over a new
// connection expects round-robin across them, whichever loop serves each one.
using Turn = std::atomic<uint64_t>;

// One per loop.
class Policy {
 public:
  Policy(RouterMode mode, uint64_t seed, Turn& turn) : mode_(mode), random_(seed), turn_(turn) {}

  RouterMode mode() const { return mode_; }

  // Position of the chosen candidate. Requires at least one. In direct mode the request names its
  // worker; if it does not, or for a retry, the decision falls back to round-robin. Modes that need
  // tokens fall back to the least loaded for requests without tokens.
  size_t Decide(std::span<const Candidate> candidates);

 private:
  size_t LeastLoaded(std::span<const Candidate> candidates);
  size_t PowerOfTwo(std::span<const Candidate> candidates);

  const RouterMode mode_;
  Random random_;
  Turn& turn_;
};

}  // namespace fathom
