// The texts about a doubted rank: the evidence in numbers, and the fix as a command or setting of
// the engine in use.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/engine_kind.h"
#include "router/fleet/feed_board.h"
#include "router/fleet/trust_evidence.h"
#include "text/tokens/token.h"

namespace fathom {

// Both empty if there is no problem.
struct TrustWords {
  std::string evidence;
  std::string fix;
};

// The text of a token in a model's vocabulary; empty if unknown.
using TokenPieces = std::function<std::string(std::string_view model, TokenId token)>;

// Further facts about the rank, to distinguish similar causes.
struct TrustScene {
  EngineKind engine = EngineKind::kUnknown;
  const FeedStatus* feed = nullptr;  // null: its events are not followed
  FeedBoard::Problem problem;        // why, if `feed` is null
  const TokenPieces* pieces = nullptr;
};

TrustWords WordsOf(const Evidence& evidence, const TrustScene& scene);

}  // namespace fathom
