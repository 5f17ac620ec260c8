// How long may a model's name be? Names are echoed in errors, logged, and kept with decisions.
#pragma once

#include <cstddef>

namespace fathom {

constexpr size_t kLongestModel = 4096;  // bytes

}  // namespace fathom
