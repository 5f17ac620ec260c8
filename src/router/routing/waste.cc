#include "router/routing/waste.h"

#include <utility>

namespace fathom {

std::string_view Name(WasteCause cause) {
  switch (cause) {
    case WasteCause::kMispredicted:
      return "mispredicted";
    case WasteCause::kLoad:
      return "load";
    case WasteCause::kFull:
      return "full";
    case WasteCause::kOverride:
      return "override";
    case WasteCause::kDoubted:
      return "doubted";
    case WasteCause::kExcluded:
      return "excluded";
    case WasteCause::kLag:
      return "lag";
    case WasteCause::kGone:
      return "gone";
    case WasteCause::kForgotten:
      return "forgotten";
    case WasteCause::kEvicted:
      return "evicted";
    case WasteCause::kUnread:
      return "prompts_unread";
  }
  std::unreachable();
}

Waste WasteOf(const KnownPrefixes& known, std::optional<uint32_t> cached) {
  Waste waste;
  uint32_t level = cached.value_or(known.used);
  for (size_t i = 0; i < kWasteCauses; ++i) {
    if (known.by_cause[i] <= level) continue;
    waste.tokens[i] = known.by_cause[i] - level;
    level = known.by_cause[i];
  }
  return waste;
}

}  // namespace fathom
