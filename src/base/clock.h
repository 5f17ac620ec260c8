// Types of time. Code that must be repeatable is passed the time; it does not read a clock.
#pragma once

#include <chrono>

namespace fathom {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

constexpr TimePoint kNever = TimePoint::max();

constexpr double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace fathom
