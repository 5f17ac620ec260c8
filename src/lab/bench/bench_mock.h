// How fast is the simulation of engines? Puts a trace, as often as needed, through virtual engines.
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench mock TRACE [requests=N] [engines=N] [block-size=N] [profile=NAME] [threads=N].
// Prints one JSON object; returns an exit status.
int RunBenchMock(std::span<const std::string_view> args);

}  // namespace fathom
