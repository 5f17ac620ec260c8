// By which number is something known that stands in place of tokens (an image, embeddings)?
#pragma once

#include <cstdint>
#include <string_view>

namespace fathom {

// One rule for all engines and for requests, because keys only help where both sides agree: a
// decimal number that fits is that number, anything else is XXH3-64 of its bytes.
uint64_t ExtraKeyOf(std::string_view identifier);

}  // namespace fathom
