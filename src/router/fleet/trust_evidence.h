// The evidence for doubting a rank, in numbers. One type for each cause of doubt.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "router/fleet/served_request.h"
#include "text/tokens/token.h"

namespace fathom {

// no_events
struct Silence {
  uint64_t requests = 0;  // that should have stored blocks
  Duration over{};
  bool heard_before = false;
  bool reported = false;  // by the engine itself: it publishes nothing
};

// prefix_caching_off
struct CacheUnused {
  bool reported = false;  // by the engine itself
  uint32_t repeats = 0;   // requests with a prefix computed before, and 0 cached tokens
};

// tokens_differ
struct TokenDifference {
  enum class Likely : uint8_t { kTemplate, kExtraFirst, kMissingFirst, kVocabulary };
  uint32_t requests = 0;
  bool located = false;             // whether the next three are set
  uint32_t position = 0;            // in the prompt
  std::optional<TokenId> ours = 0;  // nothing: the prompt ends before
  std::optional<TokenId> theirs = 0;
  Likely likely = Likely::kTemplate;
  std::string model;
  PromptKind kind = PromptKind::kChat;
  std::bitset<kPromptKinds> kinds;  // all that differ
  bool others_agree = false;        // the tokens of other kinds of prompt are the router's
  // It was seen in a probe prompt when the worker was admitted, not in requests.
  bool probed = false;
  uint32_t our_count = 0;  // tokens of that probe prompt, where only the counts could be compared
  uint32_t their_count = 0;
};

// unsupported_groups
struct UnknownGroups {
  uint64_t groups = 0;
};

// event_gap
struct LostBatches {
  uint64_t lost = 0;
  uint64_t gaps = 0;
  uint64_t repaired = 0;
};

// event_lag
struct LateEvents {
  Duration lag{};
  Duration limit{};
  bool after_first_byte = false;  // measured from the first byte; else by the engine's timestamps
};

// prediction_drift
struct PredictionDrift {
  PromptSpace space = PromptSpace::kPlain;
  bool others_fine = false;  // predictions outside this space are accurate
  bool more = false;         // it finds more than its events reported; else less
  uint32_t requests = 0;
  uint64_t predicted = 0;  // tokens
  uint64_t cached = 0;
};

// churn
struct Churn {
  uint32_t requests = 0;  // whose prefix had been cached
  uint64_t evicted = 0;   // tokens of these that were evicted
  uint64_t reused = 0;    // tokens of these that were still cached
  double stores = 0;      // blocks per minute
  double removals = 0;
  Duration lifetime{};  // of a block: held blocks / removal rate
};

using Evidence = std::variant<std::monostate, Silence, CacheUnused, TokenDifference, UnknownGroups,
                              LostBatches, LateEvents, PredictionDrift, Churn>;

}  // namespace fathom
