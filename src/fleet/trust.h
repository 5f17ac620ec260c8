// What does Fathom believe of a rank's event stream, since when, and why?
//
// A rank is in exactly one state, and the state changes how it is scored: a trusted one by what its
// cache holds and its load, a learning or doubted one by load alone, the others not at all.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace fathom {

enum class TrustState : uint8_t {
  kProbing,   // discovered, and what it can do is not known yet
  kLearning,  // admitted, no event yet
  kTrusted,   // its events say what it holds
  kDoubted,   // they cannot be used
  kExcluded,  // it gets no requests
};
std::string_view Name(TrustState state);

enum class TrustCause : uint8_t { kNone, kBlockSizeMismatch, kBlockSizeConflict, kUnhealthy };
// One spelling everywhere; empty for none.
std::string_view Name(TrustCause cause);

struct Trust {
  TrustState state = TrustState::kProbing;
  TrustCause cause = TrustCause::kNone;
  TimePoint since{};

  bool operator==(const Trust&) const = default;
};

}  // namespace fathom
