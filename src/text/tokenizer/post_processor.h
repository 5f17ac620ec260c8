// What does the post-processor put around a prompt?
//
// Errors  Parse(): kCaller.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "text/tokens/token.h"

namespace fathom {

struct PostProcessor {
  static Result<PostProcessor> Parse(const Json& json);

  std::vector<TokenId> prefix;
  std::vector<TokenId> suffix;

 private:
  Result<void> AddTemplate(const Json& json);
  Result<void> AddPair(const Json& json);
};

}  // namespace fathom
