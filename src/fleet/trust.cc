#include "fleet/trust.h"

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
    case TrustCause::kBlockSizeConflict:
      return "block_size_conflict";
    case TrustCause::kUnhealthy:
      return "unhealthy";
  }
  std::unreachable();
}

}  // namespace fathom
