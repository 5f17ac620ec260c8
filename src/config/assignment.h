// One option given one value somewhere: what every source is turned into.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/option.h"
#include "config/origin.h"
#include "config/settings.h"
#include "config/sources.h"

namespace fathom {

struct Assignment {
  const Option* option;
  std::string text;
  Origin origin;
  std::string_view unit = {};  // what a bare number counts in this source; empty: the option's own
};

// The value, or the line that refuses it.
Result<OptionValue> ValueOf(const Assignment& assignment);

// At most one assignment per option: a list that is given again grows, anything else is replaced.
Result<std::vector<Assignment>> ReadFlags(Command command, std::span<const std::string_view> args);

// FATHOM_*. Options of other commands are known and skipped: one environment may serve several.
// What Kubernetes sets of itself, after a Service of that name, is skipped as well.
Result<std::vector<Assignment>> ReadVariables(Command command, const Environment& environment);

// DYN_*, where Dynamo has a name for the option.
std::vector<Assignment> ReadDynamoVariables(Command command, const Environment& environment);

struct ConfigFile {
  std::vector<Assignment> assignments;
  std::vector<WorkerEntry> workers;
};

// name is what messages call the file.
Result<ConfigFile> ParseConfigFile(Command command, std::string_view name, const std::string& yaml);

}  // namespace fathom
