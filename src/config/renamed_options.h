// Which option was meant by a name that it no longer has?
//
// A former name is accepted as a flag, as a FATHOM_* variable and as a YAML key, and reported at
// the start. It is not in help, and not suggested for a typo. Aliases (config/option.h) are another
// thing: they stay.
//
// Memory   Tables point into the program text. Functions that take one exist for tests.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/renamed.h"
#include "config/option.h"
#include "config/settings.h"

namespace fathom {

// Names without dashes: {"former-name", "present-name", "0.1.0"}. Holds for each command that has
// the present name.
using RenamedOptionTable = std::span<const Renamed>;

RenamedOptionTable RenamedOptions();

struct NamedOption {
  const Option* option = nullptr;    // null: the command has no such option
  const Renamed* renamed = nullptr;  // set if it was found by its former name
};

// By name, alias or former name.
NamedOption FindOptionOrFormer(Command command, std::string_view name, RenamedOptionTable renamed);

// One WARN per former name, for commands with a log.
void WarnOfFormerNames(const Settings& settings, Log& log);
// The same as a line for standard error.
std::string FormerNameNote(const FormerNameUse& use);

}  // namespace fathom
