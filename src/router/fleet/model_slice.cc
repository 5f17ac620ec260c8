#include "router/fleet/model_slice.h"

#include <algorithm>
#include <utility>

#include "base/glob.h"

namespace fathom {

Result<ModelSlice> ModelSlice::Of(std::vector<std::string> patterns) {
  if (patterns.size() > kMostPatterns) {
    return Fail(Blame::kCaller, "{} patterns of models were given; at most {} are possible",
                patterns.size(), kMostPatterns);
  }
  for (const std::string& pattern : patterns) {
    if (pattern.empty() || pattern.size() > kLongestPattern) {
      return Fail(Blame::kCaller, "a pattern of models has {} characters; 1 to {} are possible",
                  pattern.size(), kLongestPattern);
    }
  }
  ModelSlice slice;
  slice.patterns_ = std::move(patterns);
  return slice;
}

bool ModelSlice::Contains(std::string_view model) const {
  if (whole() || model.empty()) return true;
  return std::ranges::any_of(
      patterns_, [&](const std::string& pattern) { return MatchesGlob(pattern, model); });
}

}  // namespace fathom
