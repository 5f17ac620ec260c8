// How much work is it to prefill these tokens behind those?
//
// The unit is the work of one token in a long prompt without a cache. A token attends to everything
// before it, so a cached context is not free: behind 16,000 cached tokens new ones cost twice as
// much. How long a unit lasts is the engine's own affair and is learned (fleet/engine_speed.h).
//
// The shape is fitted to prefill times of two models measured on an H200; a test compares it with
// every row of those tables from 256 new tokens on.
#pragma once

#include "base/clock.h"

namespace fathom {

// What a prefill costs however short it is, in tokens.
constexpr double kPrefillBase = 128;
// What each token of context adds to each token behind it.
constexpr double kAttentionShare = 5e-5;
// A unit on an H200 with a model of 8 billion parameters: what is assumed until an engine has shown
// its own speed.
constexpr Duration kUsualUnit = std::chrono::microseconds(28);

constexpr double PrefillWork(double fresh, double cached) {
  return kPrefillBase + fresh * (1 + kAttentionShare * (cached + fresh / 2));
}

}  // namespace fathom
