// A decision as text: the log line that operators search for, and all its inputs as JSON.
#pragma once

#include <string>

#include "codec/json.h"
#include "router/fleet/fleet.h"
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

}  // namespace fathom
