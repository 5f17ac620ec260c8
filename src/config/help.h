// The table of options, written out for people.
#pragma once

#include <string>

#include "config/option.h"
#include "config/settings.h"

namespace fathom {

// For --help: grouped by section, at most 100 columns wide.
std::string HelpText(Command command);

// The whole of docs/configuration.md.
std::string ConfigurationPage();

// For --print-config: one aligned line per option with its value and where that came from, then
// the workers. Secrets are "(set)" or "(unset)".
std::string PrintConfig(const Settings& settings);

// One sentence about a command.
std::string_view SummaryOf(Command command);

}  // namespace fathom
