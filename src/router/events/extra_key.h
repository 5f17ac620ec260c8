// Which number identifies content that takes the place of tokens (an image, embeddings)?
#pragma once

#include <cstdint>
#include <string_view>

namespace fathom {

// Events of all engines and requests use the same rule, because keys only match if both sides
// compute them alike: a decimal number that fits 64 bits is that number, anything else is XXH3-64
// of its bytes.
uint64_t ExtraKeyOf(std::string_view identifier);

}  // namespace fathom
