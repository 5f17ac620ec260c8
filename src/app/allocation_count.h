// How often has this thread asked for memory? For benchmarks of paths that should not.
//
// Replaces the program's operator new, except under sanitizers, which have their own.
#pragma once

#include <cstdint>
#include <optional>

namespace fathom {

// Nothing: allocations are not counted in this build.
std::optional<uint64_t> AllocationsOfThisThread();

}  // namespace fathom
