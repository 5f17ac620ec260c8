// A decision in words: the line that operators grep for, and everything behind it as JSON.
#pragma once

#include <string>

#include "codec/json.h"
#include "fleet/fleet.h"
#include "routing/decision.h"

namespace fathom {

// "Selected worker: worker_id=… dp_rank=…, logit: …, cached blocks: …, tree size: …"
std::string SelectionLine(const Decision& decision);

// Every candidate with what was known of it, its price, and how close the choice was. `fleet` knows
// the URLs.
void WriteDecision(JsonWriter& w, const Decision& decision, const FleetSnapshot& fleet,
                   TimePoint now);
// The same without the braces, for whoever has more to say.
void WriteDecisionMembers(JsonWriter& w, const Decision& decision, const FleetSnapshot& fleet,
                          TimePoint now);

}  // namespace fathom
