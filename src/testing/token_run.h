// A prompt for tests to which the text does not matter: token ids that count up.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

#include "text/tokens/token.h"

namespace fathom {

inline std::vector<TokenId> TokenRun(size_t count, TokenId from = 100) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

}  // namespace fathom
