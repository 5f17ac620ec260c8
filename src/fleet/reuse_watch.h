// Does this rank ever use again what it has computed?
//
// Where the engine tells how much it found, a prefix that comes again and again and is never found
// says that prefix caching is off. What events promised is left out: a rank that tells of what it
// keeps does keep it, and false promises are the PredictionRecord's. So are prompts with adapters
// or salts: they may be kept apart for good reasons.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <optional>

#include "fleet/served_request.h"
#include "fleet/trust_evidence.h"

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
  // What the engine says itself, if it does.
  void Reported(std::optional<bool> on) { off_ = on.has_value() && !*on; }
  void Reset() {
    repeats_ = 0;
    reuses_ = false;
  }

  std::optional<CacheUnused> Look() const {
    if (off_) return CacheUnused{.reported = true, .repeats = repeats_};
    // One that has reused something does cache; what it does not find has other reasons.
    if (reuses_ || repeats_ < kRepeats) return std::nullopt;
    return CacheUnused{.reported = false, .repeats = repeats_};
  }

 private:
  uint32_t repeats_ = 0;
  bool reuses_ = false;
  bool off_ = false;
};

}  // namespace fathom
