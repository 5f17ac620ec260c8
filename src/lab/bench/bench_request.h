// What does the router add to a request, from its body to the books?
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench request [tokens=8192] [ranks=8] [block-size=16] [runs=2000]. Prints one JSON object;
// returns an exit status.
int RunBenchRequest(std::span<const std::string_view> args);

}  // namespace fathom
