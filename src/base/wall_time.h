// A moment as calendars have it, for people and their tools: "2026-03-01T12:00:00.000Z".
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace fathom {

std::string WallTimeNow();
// What the clock on the wall shows here, as if that were UTC: seconds since 1970.
int64_t LocalSecondsNow();
// Of a moment of the steady clock, as the two clocks stand now.
std::string WallTime(TimePoint at);

}  // namespace fathom
