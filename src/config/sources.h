// Where does an option come from?
//
// A flag beats FATHOM_*, which beats DYN_*, which beats the YAML file, which beats the default.
// Unknown flags, FATHOM_* variables and YAML keys are errors with the nearest name. Unknown DYN_*
// variables are ignored, and so is a known one that something stronger overrides.
//
// Errors  One line with Blame::kCaller that names the input, where it was written, and the fix.
//         The program prints it and exits with status 78.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/option.h"
#include "config/settings.h"

namespace fathom {

using Environment = std::map<std::string, std::string, std::less<>>;

// From main's environ: "NAME=VALUE" strings up to a null pointer.
Environment EnvironmentOf(const char* const* variables);

// The content of a file. The error says only why it cannot be read: "no such file".
using FileReader = std::function<Result<std::string>(const std::string& path)>;

// Whether --help or -h is among the arguments. Ask before LoadSettings, which does not know them.
bool AsksForHelp(std::span<const std::string_view> args);

// The arguments after the command's name.
Result<Settings> LoadSettings(Command command, std::span<const std::string_view> args,
                              const Environment& environment, const FileReader& read_file);

}  // namespace fathom
