// Text as a part of a URL's path or query: everything but letters, digits and -_.~ as %XX.
#pragma once

#include <string>
#include <string_view>

namespace fathom {

std::string PercentEncode(std::string_view text);

}  // namespace fathom
