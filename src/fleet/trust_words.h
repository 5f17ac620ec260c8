// What is said about a rank that is doubted: the evidence in numbers, and the fix as a command or
// setting in the engine's own words.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fleet/engine_report.h"
#include "fleet/feed_board.h"
#include "fleet/trust_evidence.h"
#include "tokens/token.h"

namespace fathom {

// Both empty while all is well.
struct TrustWords {
  std::string evidence;
  std::string fix;
};

// The text of a token in a model's vocabulary; empty where that is not known.
using TokenPieces = std::function<std::string(std::string_view model, TokenId token)>;

// What else is known of the rank, to tell like from like.
struct TrustScene {
  EngineKind engine = EngineKind::kUnknown;
  const FeedStatus* feed = nullptr;  // null: nobody follows its events
  FeedBoard::Problem problem;        // then, why
  const TokenPieces* pieces = nullptr;
};

TrustWords WordsOf(const Evidence& evidence, const TrustScene& scene);

}  // namespace fathom
