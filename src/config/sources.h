// Which source sets an option?
//
// A flag overrides FATHOM_*, which overrides DYN_*, which overrides the YAML file, which overrides
// the default. Unknown flags, FATHOM_* variables and YAML keys are errors with the nearest name.
// Unknown DYN_* variables are ignored, and so is a known one that is overridden.
//
// A former name (config/renamed_options.h) counts like the present one. Both in one source are an
// error; in two sources the precedence decides.
//
// Errors  One line with Blame::kCaller that has the input, where it was written, and the fix. The
//         program prints it and exits with status 78.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/option.h"
#include "config/renamed_options.h"
#include "config/settings.h"

namespace fathom {

using Environment = std::map<std::string, std::string, std::less<>>;

// From main's environ: "NAME=VALUE" strings up to a null pointer.
Environment EnvironmentOf(const char* const* variables);

// The content of a file. The error contains only the reason: "no such file".
using FileReader = std::function<Result<std::string>(const std::string& path)>;

// Whether --help or -h is among the arguments. Call before LoadSettings, which refuses
// them.
bool AsksForHelp(std::span<const std::string_view> args);

// `args` are the arguments after the command's name.
Result<Settings> LoadSettings(Command command, std::span<const std::string_view> args,
                              const Environment& environment, const FileReader& read_file,
                              RenamedOptionTable renamed = RenamedOptions());

}  // namespace fathom
