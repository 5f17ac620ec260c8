// When does a test begin whose clock is its own?
#pragma once

#include <chrono>

#include "base/clock.h"

namespace fathom {

// Later than zero, which is the time of things that have not happened.
inline constexpr TimePoint kTestBegin{std::chrono::seconds(1000)};

}  // namespace fathom
