#include "router/fleet/trust.h"

#include <utility>

namespace fathom {

std::string_view Name(TrustState state) {
  switch (state) {
    case TrustState::kProbing:
      return "probing";
    case TrustState::kLearning:
      return "learning";
    case TrustState::kTrusted:
      return "trusted";
    case TrustState::kDoubted:
      return "doubted";
    case TrustState::kExcluded:
      return "excluded";
  }
  std::unreachable();
}

std::string_view Name(TrustCause cause) {
  switch (cause) {
    case TrustCause::kNone:
      return "";
    case TrustCause::kBlockSizeMismatch:
      return "block_size_mismatch";
    case TrustCause::kPrefixCachingOff:
      return "prefix_caching_off";
    case TrustCause::kNoEvents:
      return "no_events";
    case TrustCause::kTokensDiffer:
      return "tokens_differ";
    case TrustCause::kUnsupportedGroups:
      return "unsupported_groups";
    case TrustCause::kEventGap:
      return "event_gap";
    case TrustCause::kEventLag:
      return "event_lag";
    case TrustCause::kPredictionDrift:
      return "prediction_drift";
    case TrustCause::kChurn:
      return "churn";
    case TrustCause::kBlockSizeConflict:
      return "block_size_conflict";
    case TrustCause::kUnhealthy:
      return "unhealthy";
  }
  std::unreachable();
}

std::string_view RunbookOf(TrustCause cause) {
  switch (cause) {
    case TrustCause::kNone:
      return "";
    case TrustCause::kBlockSizeMismatch:
      return "runbooks/block-size-mismatch.md";
    case TrustCause::kPrefixCachingOff:
      return "runbooks/prefix-caching-off.md";
    case TrustCause::kNoEvents:
      return "runbooks/no-events.md";
    case TrustCause::kTokensDiffer:
      return "runbooks/tokens-differ.md";
    case TrustCause::kUnsupportedGroups:
      return "runbooks/unsupported-groups.md";
    case TrustCause::kEventGap:
      return "runbooks/event-gap.md";
    case TrustCause::kEventLag:
      return "runbooks/event-lag.md";
    case TrustCause::kPredictionDrift:
      return "runbooks/prediction-drift.md";
    case TrustCause::kChurn:
      return "runbooks/churn.md";
    case TrustCause::kBlockSizeConflict:
      return "runbooks/block-size-conflict.md";
    case TrustCause::kUnhealthy:
      return "runbooks/rank-excluded.md";
  }
  std::unreachable();
}

}  // namespace fathom
