// What does a decision cost when the fleet's caches have blocks of several sizes?
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench cohorts [NAME=VALUE]... Prints one JSON object; returns an exit status.
int RunBenchCohorts(std::span<const std::string_view> args);

}  // namespace fathom
