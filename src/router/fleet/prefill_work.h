// How much work is it to prefill new tokens after a cached context?
//
// The unit is the work of one token in a long prompt without a cache. A token attends to everything
// before it, so a cached context is not free: after 16,000 cached tokens new ones cost about twice
// as much. The time per unit depends on the engine and is learned (router/fleet/engine_speed.h).
//
// The shape is fitted to prefill times of two models measured on an H200; a test compares it with
// every row of those tables from 256 new tokens on.
#pragma once

#include "base/clock.h"

namespace fathom {

// The fixed cost of a prefill, in tokens.
constexpr double kPrefillBase = 128;
// The cost that each token of context adds to each token after it.
constexpr double kAttentionShare = 5e-5;
// A unit on an H200 with a model of 8 billion parameters: assumed until an engine's own speed is
// learned.
constexpr Duration kUsualUnit = std::chrono::microseconds(28);

constexpr double PrefillWork(double fresh, double cached) {
  return kPrefillBase + fresh * (1 + kAttentionShare * (cached + fresh / 2));
}

}  // namespace fathom
