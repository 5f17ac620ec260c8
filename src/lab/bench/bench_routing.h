// What is each way of routing worth? Replays a trace in virtual time, once per policy.
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench routing TRACE [NAME=VALUE]... Prints one JSON object; returns an exit status.
int RunBenchRouting(std::span<const std::string_view> args);

}  // namespace fathom
