// Does this name match a pattern?
//
//   *   any number of characters, also none, also '/'
//   ?   one character
//
// Every other character stands for itself. Bytes are compared, upper and lower case differ.
#pragma once

#include <string_view>

namespace fathom {

// Takes at most pattern.size() * text.size() steps.
bool MatchesGlob(std::string_view pattern, std::string_view text);

}  // namespace fathom
