// When was a line written?
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

// UTC. A stamp without a zone counts as UTC.
using LogTime = std::chrono::sys_time<std::chrono::milliseconds>;

// RFC 3339 at the front of the text, with a T or a space in the middle, any number of digits of a
// second after a point or a comma, and with or without a zone.
std::optional<LogTime> ReadTime(std::string_view text);

// The first one in the text's first bytes, behind whatever put the line there.
std::optional<LogTime> FindTime(std::string_view text);

// "2026-02-16T14:38:53.950Z"
std::string ToText(LogTime time);

}  // namespace fathom
