// How long does it take to tell another router what the index holds, and what does it cost both?
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench snapshot [NAME=VALUE]...: see bench/README.md. Prints one JSON object; returns an
// exit status, which is a failure if the copy differs from the original.
int RunBenchSnapshot(std::span<const std::string_view> args);

}  // namespace fathom
