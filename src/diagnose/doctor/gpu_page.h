// What does DCGM's exporter say of the GPUs?
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "diagnose/doctor/live_look.h"
#include "diagnose/findings/report.h"

namespace fathom {

// GET /metrics of the exporter at that URL, as patiently as others are asked. What was sent is
// added to `sent`.
Result<std::string> FetchGpuPage(std::string url, const LiveTargets& manner,
                                 std::vector<SentRequest>& sent);

}  // namespace fathom
