// How does --kv-events-config read after a change?
//
// A JSON object in an argument, in vLLM and SGLang. Its members keep their order, new ones come
// last.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/json.h"
#include "diagnose/lint/plan.h"
#include "diagnose/manifest/edit.h"

namespace fathom {

using ConfigChanges = std::vector<std::pair<std::string, Json>>;

// Spaces after colons and commas only where the old text had them. Empty if it is no JSON object.
std::string WithChanges(std::string_view config, const ConfigChanges& changes);

// The edits that make them in that engine's configuration; none where it cannot be edited.
std::vector<TextEdit> ChangePublisher(const Plan& plan, const PublisherSettings& publisher,
                                      const ConfigChanges& changes);

// What to write where there is nothing yet, with replay, for an engine whose ranks use the ports
// from 5557 on.
std::string NewEventsConfig(const PlannedEngine& engine);

}  // namespace fathom
