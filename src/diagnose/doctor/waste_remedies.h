// What reduces prefill that is wasted for such a cause?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "diagnose/findings/finding.h"

namespace fathom {

// Tokens by the causes of kv_router_wasted_prefill_tokens_total. One fix for each cause that has a
// noticeable share, the largest first. Where this version knows none of them, the page that
// explains all.
std::vector<Fix> WasteRemedies(const std::map<std::string, double>& tokens_by_cause);

}  // namespace fathom
