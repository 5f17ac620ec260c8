// How long does it take to name the blocks of a long prompt?
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench keys [tokens=131072] [block-size=16] [runs=500]. Prints one JSON object; returns an
// exit status.
int RunBenchKeys(std::span<const std::string_view> args);

}  // namespace fathom
