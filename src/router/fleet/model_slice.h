// Which models does a router follow and serve?
//
// All, or those whose names match a pattern (base/glob.h). A large fleet is cut so: each replica
// needs memory and events for its own models alone. The name that counts is the one in requests; an
// adapter has a name of its own.
//
// Threads  Immutable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fathom {

class ModelSlice {
 public:
  static constexpr size_t kMostPatterns = 256;
  static constexpr size_t kLongestPattern = 512;

  ModelSlice() = default;  // all models
  // No pattern: all models. Fails if there are too many, or one is empty or too long.
  static Result<ModelSlice> Of(std::vector<std::string> patterns);

  bool whole() const { return patterns_.empty(); }
  // An empty name is any model's.
  bool Contains(std::string_view model) const;
  const std::vector<std::string>& patterns() const { return patterns_; }

 private:
  std::vector<std::string> patterns_;
};

}  // namespace fathom
