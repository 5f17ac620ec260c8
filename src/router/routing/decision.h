// One routing decision, with its inputs.
//
// Decide() is a pure function of the fields above `prices`, so a recorded decision can be replayed
// bit for bit and explained later. In a large fleet not every candidate is listed: those that hold
// a part of the prompt are, and the best of the others. Every rule of choice is the lowest of a
// number that each candidate has by itself, so the listed ones are enough to repeat the choice. (A
// hint only compares its rank with the lowest, and both are listed.)
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "router/routing/policy.h"
#include "router/routing/price.h"
#include "router/routing/session_hints.h"
#include "router/routing/waste.h"

namespace fathom {

struct Decision {
  // The inputs.
  RouterMode mode = RouterMode::kKv;
  bool events = true;         // depths: engines' events, not the router's own decisions
  bool tokens_known = false;  // otherwise the choice is by load
  bool by_text = false;       // in place of tokens there are values of the prompt's text
  bool several = false;       // replicas of this router choose at the same time
  PromptView prompt;
  Weights weights;
  uint64_t random = 0;  // the seed of this choice
  uint64_t prefix = 0;  // prefix-hash: hash of the leading tokens
  double bound = 0;     // prefix-hash: maximum load of a rank, as a multiple of the mean
  std::vector<RankView> ranks;
  size_t places = 0;  // positions of candidates are below this; 0: a rank's is its place in `ranks`
  // The candidates that are not listed.
  struct Others {
    size_t count = 0;
    uint64_t requests = 0;       // on all of them, in prefix-hash mode
    double lowest = INFINITY;    // no other costs less
    double highest = -INFINITY;  // with a temperature: no other costs more
    friend bool operator==(const Others&, const Others&) = default;
  };
  Others others;
  static constexpr size_t kMostFull = 32;
  std::vector<RankLabel> full;  // left out: they run as many sequences as they can; some of them
  uint32_t full_tokens = 0;     // leading tokens of the prompt that one of `full` has cached
  size_t tree_size = 0;         // blocks in the index
  // The rank that served the request's session last, by a hint of its client. It is a candidate.
  struct Hint {
    HintKind kind = HintKind::kUser;
    RankLabel rank;
    uint32_t tokens = 0;     // of its `believed`, those that only the hint gives
    uint32_t otherwise = 0;  // its `believed` without the hint
    friend bool operator==(const Hint&, const Hint&) = default;
  };
  std::optional<Hint> hint;

  // The result.
  std::vector<Price> prices;  // of each rank
  size_t chosen = 0;
  double margin = 0;          // cost of the second best minus the chosen one's; 0 if there is none
  bool hint_decided = false;  // without the hint another rank would have been chosen

  // The request.
  std::string_view narrowed_by;  // the request's option that excluded ranks; or empty
  std::string_view tokens_from;  // source of the tokens
  std::string_view inexact;      // why the model's files do not give all tokens; or empty
  uint32_t known_tokens = 0;     // of the prompt
  TimePoint at{};
  uint64_t number = 0;  // sequence number
  std::string request_id;
  std::string model;
  double waited = 0;  // seconds until a rank had room

  // The outcome.
  bool served = false;
  std::optional<uint32_t> found;  // cached tokens, as the engine reports
  Waste waste;

  const RankView& rank() const { return ranks[chosen]; }
  const Price& price() const { return prices[chosen]; }
  // Tokens on the device of the chosen rank that events confirmed and a hit can use.
  uint32_t cached_tokens() const { return events ? rank().cached[0] : 0; }
};

// Prices every listed rank and sets the cheapest, or one drawn by cost, as `chosen`. Requires at
// least one rank.
void Decide(Decision& decision);

// Costs that differ by no more are as good as equal: less than a rank with one more request in
// prefill costs. A hint decides among such ranks, and chance if replicas choose at the same time.
double TieOf(const Decision& decision);

// Up to this many candidates are listed, whatever they hold.
constexpr size_t kAllListed = 32;
// Of more, the best by cost, and at most so many that hold a part of the prompt, the deepest.
constexpr size_t kBestListed = 8;
constexpr size_t kHoldersListed = 128;

// Lists fewer candidates of a decision that was made, and counts the rest among the others. The
// decision stays the same.
void Shorten(Decision& decision);

}  // namespace fathom
