#include "router/routing/policy.h"

#include <array>

namespace fathom {
namespace {

constexpr std::array<std::string_view, 7> kNames = {
    "round-robin", "random", "power-of-two", "least-loaded", "direct", "kv", "prefix-hash"};

}  // namespace

std::optional<RouterMode> ParseRouterMode(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<RouterMode>(i);
  }
  return std::nullopt;
}

std::string_view Name(RouterMode mode) { return kNames[static_cast<size_t>(mode)]; }

size_t Policy::Decide(std::span<const Candidate> candidates) {
  switch (mode_) {
    case RouterMode::kRandom:
      return random_.Below(candidates.size());
    case RouterMode::kPowerOfTwo:
      return PowerOfTwo(candidates);
    case RouterMode::kLeastLoaded:
    case RouterMode::kKv:
    case RouterMode::kPrefixHash:
      return LeastLoaded(candidates);
    case RouterMode::kRoundRobin:
    case RouterMode::kDirect:
      break;
  }
  return turn_.fetch_add(1, std::memory_order_relaxed) % candidates.size();
}

// The less loaded of two distinct candidates, drawn at random.
size_t Policy::PowerOfTwo(std::span<const Candidate> candidates) {
  if (candidates.size() == 1) return 0;
  const size_t a = random_.Below(candidates.size());
  size_t b = random_.Below(candidates.size() - 1);
  if (b >= a) ++b;
  return candidates[b].in_flight < candidates[a].in_flight ? b : a;
}

// Ties are broken at random: several routers in front of one idle fleet must not all send
// to the first.
size_t Policy::LeastLoaded(std::span<const Candidate> candidates) {
  size_t best = 0;
  uint64_t ties = 1;
  for (size_t i = 1; i < candidates.size(); ++i) {
    if (candidates[i].in_flight > candidates[best].in_flight) continue;
    ties = candidates[i].in_flight < candidates[best].in_flight ? 1 : ties + 1;
    if (random_.Below(ties) == 0) best = i;
  }
  return best;
}

}  // namespace fathom
