// The table of options as text for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

// One line of text as roff that shows exactly it: a hyphen can be searched for and copied, quotes
// and accents stay ASCII, and the line cannot begin a request.
std::string Roff(std::string_view text);

// The source of fathom(1): the commands, exit status, environment and files.
std::string OverviewManual();

// The source of the manual page of a command: "fathom-serve(1)".
std::string ManualOf(Command command);

// For --print-config: one aligned line per option with its value and its origin, then the workers.
// Secrets are "(set)" or "(unset)".
std::string PrintConfig(const Settings& settings);

// One sentence about a command.
std::string_view SummaryOf(Command command);

// A command as the overview lists it.
struct CommandSummary {
  std::string_view name;
  std::string_view summary;  // one sentence
};

// Those that the table has options for, then the others.
std::vector<CommandSummary> AllCommands();

}  // namespace fathom
