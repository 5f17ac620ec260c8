// What a prompt is made of.
#pragma once

#include <cstdint>

namespace fathom {

using TokenId = uint32_t;

}  // namespace fathom
