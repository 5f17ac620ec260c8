// What counts how much in a choice. Operators set it; a request may override parts of it in a
// header.
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
  // A request that is being served, in tokens of context.
  double active_request = 0;
  // What a cached token is worth that must be brought back from slower memory first.
  double host_hit = 0.75;
  double disk_hit = 0.25;
  // 0 takes the lowest cost; above, costs are chances.
  double temperature = 0;

  friend bool operator==(const Weights&, const Weights&) = default;
};

// `wish` is a list like "overlap_score_credit=0.5, prefill_load_scale=4, router_temperature=0.1".
// An error names what is wrong and what is possible.
Result<Weights> Override(const Weights& usual, std::string_view wish);

}  // namespace fathom
