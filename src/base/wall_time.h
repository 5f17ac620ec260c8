// A time of day and date as text, for people and their tools: "2026-03-01T12:00:00.000Z".
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace fathom {

std::string WallTimeNow();
// The local time of day and date, encoded as if it were UTC: seconds since 1970.
int64_t LocalSecondsNow();
// A time of the steady clock, converted with the present offset between the two clocks.
std::string WallTime(TimePoint at);

}  // namespace fathom
