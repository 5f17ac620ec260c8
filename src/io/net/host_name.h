// May this text be looked up as the name of a host?
#pragma once

#include <string>
#include <string_view>

namespace fathom {

// Labels of 1 to 63 letters, digits, '-' or '_', separated by dots, at most 253 bytes in all. One
// dot at the end is allowed: such a name is complete, and no search domain is appended to it.
// Digits and dots alone are a misspelled IPv4 address, not a name.
bool IsHostName(std::string_view text);

// localhost and the names below it: always this machine, never a question for a name server
// (RFC 6761).
bool IsLocalhost(std::string_view name);

// Names are compared without regard to case.
std::string LowerHostName(std::string_view name);

}  // namespace fathom
