// A doubt of a running Fathom, as a finding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "diagnose/doctor/remedies.h"
#include "diagnose/findings/finding.h"

namespace fathom {

// What the router said of one rank, in its log or on /health.
struct SaidDoubt {
  std::string source;  // where it was said: "serve.log:12", "GET /health of http://..."
  std::string url;     // the worker's
  uint32_t rank = 0;
  std::string cause;  // as the router spells it: "no_events"
  std::string evidence;
  std::string fix;
  uint64_t cost_tokens = 0;
  EngineKind engine = EngineKind::kUnknown;
  double share = 1;  // of the fleet's ranks that this one is
};

// A sentence of the router's, to begin a line with.
std::string Capitalised(std::string text);

// A cause that this version does not know becomes a finding of index-empty, in the router's words.
Finding DoubtFinding(const SaidDoubt& doubt);

}  // namespace fathom
