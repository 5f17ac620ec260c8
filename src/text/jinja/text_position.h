// Texts by code points: how many, and where is the one with this number?
#pragma once

#include <cstddef>
#include <string_view>

namespace fathom {

size_t CountCodePoints(std::string_view text);
// Where the code point of that number begins; the end of the text if there are fewer.
size_t OffsetOf(std::string_view text, size_t number);

}  // namespace fathom
