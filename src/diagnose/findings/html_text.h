// Text for between the tags of a page, and for the values of attributes in double quotes.
#pragma once

#include <string>
#include <string_view>

namespace fathom {

// On one line, made safe to look at (shown_text.h), its markup escaped.
std::string HtmlText(std::string_view text);

// The same for a line that CodeLines() returned: spaces stay.
std::string HtmlCode(std::string_view line);

}  // namespace fathom
