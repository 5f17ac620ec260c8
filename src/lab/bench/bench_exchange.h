// What does it cost that replicas of the router tell each other what they do?
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench exchange [NAME=VALUE]... Prints one JSON object; returns an exit status.
int RunBenchExchange(std::span<const std::string_view> args);

}  // namespace fathom
