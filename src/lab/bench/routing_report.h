// One replay as a JSON object, for bench/routing.py.
#pragma once

#include <string>

#include "lab/replay/replay.h"

namespace fathom {

// Times in milliseconds, but decisions in nanoseconds. `ideal` is the reuse that was possible.
std::string RoutingReport(ReplayPolicy policy, const ReplayReport& report, double ideal,
                          double wall_seconds);

}  // namespace fathom
