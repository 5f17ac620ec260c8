// The table of options as text for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/option.h"
#include "config/settings.h"

namespace fathom {

// For --help: grouped by section, in lines of at most `width` columns. Only a name that is wider
// stands alone on a longer line.
std::string HelpText(Command command, size_t width);

// The text in lines of at most `width` columns. The first begins at `column`, with what stands
// there already; the others at `indent`. Ends with a line end.
std::string Wrapped(std::string_view text, size_t column, size_t indent, size_t width);

// The whole of docs/configuration.md.
std::string ConfigurationPage();

// For --print-config: one aligned line per option with its value and its origin, then the workers.
// Secrets are "(set)" or "(unset)".
std::string PrintConfig(const Settings& settings);

// One sentence about a command.
std::string_view SummaryOf(Command command);

}  // namespace fathom
