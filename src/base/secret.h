// A number that nobody can guess.
#pragma once

#include <cstdint>

namespace fathom {

// Of the kernel.
uint64_t RandomSecret();

}  // namespace fathom
