// Texts without what stands at their ends.
#pragma once

#include <string_view>

namespace fathom {

// Without the whitespace that Python knows, or without any of the code points in `characters`.
std::string_view StripLeft(std::string_view text);
std::string_view StripRight(std::string_view text);
std::string_view StripLeft(std::string_view text, std::string_view characters);
std::string_view StripRight(std::string_view text, std::string_view characters);

}  // namespace fathom
