// In which trust state is a rank's event stream, since when, and why?
//
// A rank is in exactly one state, and the state changes how it is scored: a trusted rank by its
// cache and its load, a learning one by load alone, a doubted one by load or with reduced credit,
// the others not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace fathom {

enum class TrustState : uint8_t {
  kProbing,   // discovered, capabilities not known yet
  kLearning,  // admitted, no event yet
  kTrusted,   // its events describe its cache
  kDoubted,   // its events cannot be used, or only with reduced credit
  kExcluded,  // it gets no requests
};
constexpr size_t kTrustStates = 5;
std::string_view Name(TrustState state);

enum class TrustCause : uint8_t {
  kNone,
  // Of doubt.
  kBlockSizeMismatch,
  kPrefixCachingOff,   // it reuses nothing that it computes
  kNoEvents,           // it serves requests and publishes no events
  kTokensDiffer,       // its tokens differ from those that the router looks up
  kUnsupportedGroups,  // it has cache groups that Fathom does not support
  kEventGap,           // events were lost and not recovered
  kEventLag,           // events arrive too late to be useful
  kPredictionDrift,    // its cached tokens differ from the predicted ones
  kChurn,              // its blocks are evicted before they are reused
  // Of exclusion.
  kBlockSizeConflict,
  kUnhealthy,
};
constexpr size_t kTrustCauses = 12;
// One spelling everywhere; empty for none.
std::string_view Name(TrustCause cause);
// The page with the fix, below docs/: "runbooks/no-events.md"; empty for none.
std::string_view RunbookOf(TrustCause cause);

struct Trust {
  TrustState state = TrustState::kProbing;
  TrustCause cause = TrustCause::kNone;
  TimePoint since{};

  bool operator==(const Trust&) const = default;
};

}  // namespace fathom
