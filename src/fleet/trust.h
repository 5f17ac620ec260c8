// What does Fathom believe of a rank's event stream, since when, and why?
//
// A rank is in exactly one state, and the state changes how it is scored: a trusted one by what its
// cache holds and its load, a learning one by load alone, a doubted one by load or for as much as
// its word has been worth, the others not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace fathom {

enum class TrustState : uint8_t {
  kProbing,   // discovered, and what it can do is not known yet
  kLearning,  // admitted, no event yet
  kTrusted,   // its events say what it holds
  kDoubted,   // they cannot be used, or not without reserve
  kExcluded,  // it gets no requests
};
constexpr size_t kTrustStates = 5;
std::string_view Name(TrustState state);

enum class TrustCause : uint8_t {
  kNone,
  // Of doubt.
  kBlockSizeMismatch,
  kPrefixCachingOff,   // nothing that it computes is used again
  kNoEvents,           // it serves requests and publishes nothing
  kTokensDiffer,       // it computes other tokens than those that are looked up
  kUnsupportedGroups,  // parts of its cache have rules that are not known here
  kEventGap,           // events were lost, and nothing brought them back
  kEventLag,           // they come too late to be of use
  kPredictionDrift,    // it finds less in its cache than its events say
  kChurn,              // what it keeps is evicted before it is wanted again
  // Of exclusion.
  kBlockSizeConflict,
  kUnhealthy,
};
constexpr size_t kTrustCauses = 12;
// One spelling everywhere; empty for none.
std::string_view Name(TrustCause cause);
// The page that says what to do, "docs/runbooks/no-events.md"; empty for none.
std::string_view RunbookOf(TrustCause cause);

struct Trust {
  TrustState state = TrustState::kProbing;
  TrustCause cause = TrustCause::kNone;
  TimePoint since{};

  bool operator==(const Trust&) const = default;
};

}  // namespace fathom
