// A moment as its format asks for it, in UTC and in English.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

// `seconds` since 1970. Errors: kCaller, when there is too much of it.
Result<std::string> FormatTime(std::string_view format, int64_t seconds);

}  // namespace fathom
