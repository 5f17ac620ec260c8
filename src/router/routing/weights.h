// How much does each part of a price count? Operators set the weights; a request may override some
// in a header.
#pragma once

#include <string_view>

#include "base/result.h"

namespace fathom {

struct Weights {
  // How much of a cached token's prefill counts as saved.
  double overlap_credit = 1;
  // A token of prefill in units of a token of context being decoded. The H200 tables give 870 for
  // one step and 1,800 for a long answer; in replays everything from 16 to 256 is equally good
  // (docs/design/0007).
  double prefill_scale = 64;
  // The cost of a running request, in tokens of context.
  double active_request = 0;
  // The value of a cached token that must first be loaded from slower memory.
  double host_hit = 0.75;
  double disk_hit = 0.25;
  // 0: the lowest cost is chosen. Above 0: random, with probabilities from the costs.
  double temperature = 0;

  friend bool operator==(const Weights&, const Weights&) = default;
};

// `changes` is a list like "overlap_score_credit=0.5, prefill_load_scale=4,
// router_temperature=0.1". An error names the wrong part and the possible values.
Result<Weights> Override(const Weights& usual, std::string_view changes);

}  // namespace fathom
