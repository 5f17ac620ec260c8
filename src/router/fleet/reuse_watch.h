// Does this rank ever reuse what it has computed?
//
// If the engine reports cached tokens, a prefix that is sent repeatedly and never found shows that
// prefix caching is off. Requests with predicted tokens are excluded: a rank that publishes its
// blocks does cache, and wrong predictions belong to the PredictionRecord. Prompts with adapters or
// salts are excluded too: the engine may keep them apart for valid reasons.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <optional>

#include "router/fleet/served_request.h"
#include "router/fleet/trust_evidence.h"

namespace fathom {

class ReuseWatch {
 public:
  static constexpr uint32_t kRepeats = 8;

  void Served(const ServedRequest& request) {
    if (!request.cached) return;
    if (*request.cached > 0) {
      repeats_ = 0;
      reuses_ = true;
      return;
    }
    if (request.space != PromptSpace::kPlain || request.predicted > 0) return;
    if (request.repeated >= request.block_size) ++repeats_;
  }
  // The engine's own report, if there is one.
  void Reported(std::optional<bool> on) { off_ = on.has_value() && !*on; }
  void Reset() {
    repeats_ = 0;
    reuses_ = false;
  }

  std::optional<CacheUnused> Look() const {
    if (off_) return CacheUnused{.reported = true, .repeats = repeats_};
    // A rank that has reused something does cache; its misses have other causes.
    if (reuses_ || repeats_ < kRepeats) return std::nullopt;
    return CacheUnused{.reported = false, .repeats = repeats_};
  }

 private:
  uint32_t repeats_ = 0;
  bool reuses_ = false;
  bool off_ = false;
};

}  // namespace fathom
