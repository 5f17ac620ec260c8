// What does a decision cost in a fleet of this size, and what does the fleet cost without requests?
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench fleet [--json] [NAME=VALUE]... Prints one row per number of ranks and models;
// returns an exit status.
int RunBenchFleet(std::span<const std::string_view> args);

}  // namespace fathom
