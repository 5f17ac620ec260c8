// What does it cost a request that somebody watches whether ranks can be trusted?
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench trust [NAME=VALUE]... Prints one JSON object; returns an exit status.
int RunBenchTrust(std::span<const std::string_view> args);

}  // namespace fathom
