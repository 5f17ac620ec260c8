// How fast is the index, is it right, and what does it cost? Plays block operations on it.
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench index TRACE | --ops FILE, then NAME=VALUE...: see bench/README.md. Prints one JSON
// object; returns an exit status, which is a failure if the answers are wrong.
int RunBenchIndex(std::span<const std::string_view> args);

}  // namespace fathom
