// How many bytes has this thread ever asked the allocator for? For benchmarks of paths that should
// ask for few.
#pragma once

#include <cstdint>
#include <optional>

namespace fathom {

// Nothing: the program is not linked with jemalloc, which is what counts them.
std::optional<uint64_t> AllocatedBytesOfThisThread();

}  // namespace fathom
