// One routing choice, with everything that went into it.
//
// Choose() is a pure function of what stands above `prices`, so a recorded decision can be replayed
// bit for bit and explained long after.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "routing/policy.h"
#include "routing/price.h"
#include "routing/waste.h"

namespace fathom {

struct Decision {
  // What was known.
  RouterMode mode = RouterMode::kKv;
  bool events = true;         // depths come from the engines' events, not from our own decisions
  bool tokens_known = false;  // otherwise the choice is by load
  PromptView prompt;
  Weights weights;
  uint64_t random = 0;  // the seed of this choice
  uint64_t prefix = 0;  // prefix-hash: of the tokens it looks at
  double bound = 0;     // prefix-hash: how much above the mean a rank may be loaded
  std::vector<RankView> ranks;
  std::vector<RankLabel> full;  // left out: they run as many requests as they can
  uint32_t full_tokens = 0;     // leading tokens of the prompt that one of these has
  size_t tree_size = 0;         // blocks that the index knew of

  // What follows from it.
  std::vector<Price> prices;  // of each rank
  size_t chosen = 0;
  double margin = 0;  // by which the second best is dearer; 0 if there is none

  // What it was for.
  std::string_view narrowed_by;  // the request's own wish that left only some places; or nothing
  std::string_view tokens_from;  // who knew them
  std::string_view inexact;      // why the model's files do not give all of them; or nothing
  uint32_t known_tokens = 0;     // of the prompt
  TimePoint at{};
  uint64_t number = 0;  // counts decisions
  std::string request_id;
  std::string model;
  double waited = 0;  // seconds until a rank had room

  // What became of it.
  bool served = false;
  std::optional<uint32_t> found;  // cached tokens, as the engine says
  Waste waste;

  const RankView& rank() const { return ranks[chosen]; }
  const Price& price() const { return prices[chosen]; }
  // What events confirmed, and a hit can use: tokens on the device of the chosen rank.
  uint32_t cached_tokens() const { return events ? rank().cached[0] : 0; }
};

// Prices every rank and chooses one; there must be at least one.
void Choose(Decision& decision);

}  // namespace fathom
