// What a server wrote, fit to be shown: no escapes for a terminal, and no more than one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fathom {

// Control bytes are '?', what is beyond `most` bytes is "...".
std::string Shown(std::string_view text, size_t most = 400);

}  // namespace fathom
