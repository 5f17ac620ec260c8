// What a string between quotes stands for: Python's escapes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

// `text` without its quotes. Errors: kCaller, for escapes that say no character.
Result<std::string> UnescapeString(std::string_view text);

}  // namespace fathom
