// One option with one value from one place: the common form of all sources.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/option.h"
#include "config/origin.h"
#include "config/renamed_options.h"
#include "config/settings.h"
#include "config/sources.h"

namespace fathom {

struct Assignment {
  const Option* option;
  std::string text;
  Origin origin;
  std::string_view unit = {};  // unit of a plain number in this source; empty: the option's own
  const Renamed* renamed = nullptr;  // set if the option was written by its former name
};

// The value, or an error that names the place.
Result<OptionValue> ValueOf(const Assignment& assignment);

// One source with both names of an option is refused: which of the two was meant is not known.
Error BothNames(const Origin& former, std::string_view now);

// At most one assignment per option: a repeated list is extended, any other option is replaced.
Result<std::vector<Assignment>> ReadFlags(Command command, std::span<const std::string_view> args,
                                          RenamedOptionTable renamed);

// FATHOM_*. Options of other commands are skipped: one environment may serve several commands.
// Variables that Kubernetes sets for a Service of that name are skipped as well.
Result<std::vector<Assignment>> ReadVariables(Command command, const Environment& environment,
                                              RenamedOptionTable renamed);

// DYN_*, for options that Dynamo has too.
std::vector<Assignment> ReadDynamoVariables(Command command, const Environment& environment);

struct ConfigFile {
  std::vector<Assignment> assignments;
  std::vector<WorkerEntry> workers;
};

// `name` identifies the file in messages.
Result<ConfigFile> ParseConfigFile(Command command, std::string_view name, const std::string& yaml,
                                   RenamedOptionTable renamed);

}  // namespace fathom
