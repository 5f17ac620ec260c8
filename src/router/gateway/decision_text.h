// A decision as text: the log line that operators search for, and all its inputs as JSON.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "codec/json.h"
#include "router/fleet/fleet.h"
#include "router/index/holding.h"
#include "router/routing/decision.h"

namespace fathom {

// "Selected worker: worker_id=… dp_rank=…, logit: …, cached blocks: …, tree size: …"
std::string SelectionLine(const Decision& decision);

// Every listed candidate with its inputs and its price, what is known of the others, and how close
// the choice was. `fleet` supplies the URLs.
void WriteDecision(JsonWriter& w, const Decision& decision, const FleetSnapshot& fleet,
                   TimePoint now);
// The same without the braces, for callers that add members.
void WriteDecisionMembers(JsonWriter& w, const Decision& decision, const FleetSnapshot& fleet,
                          TimePoint now);

// What each tier adds to the faster ones, of leading tokens that are cached in a tier or a faster
// one: {"device": 32, "host": 16, "disk": 0, "external": 0}.
template <class Number>
void WriteTiers(JsonWriter& w, const std::array<Number, kTiers>& tokens) {
  w.BeginObject();
  Number faster = 0;
  for (size_t tier = 0; tier < kTiers; ++tier) {
    const Number here = std::max(tokens[tier], faster);
    w.Key(Name(static_cast<Tier>(tier))).Unsigned(here - faster);
    faster = here;
  }
  w.EndObject();
}

}  // namespace fathom
