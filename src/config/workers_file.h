// Which workers does a watched file name? YAML: the key workers with a list, as in the
// configuration file, or the bare list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/settings.h"

namespace fathom {

// `name` identifies the file in messages. An empty file is refused, because it may be half written;
// only `workers: []` means that there are none.
Result<std::vector<WorkerEntry>> ParseWorkersFile(std::string_view name, const std::string& yaml);

}  // namespace fathom
