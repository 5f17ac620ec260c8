// How are lint findings shown?
#pragma once

#include <span>
#include <string>

#include "lint/linter.h"

namespace fathom {

// For people: `file:line: severity: message [id]` with why, fix and docs below, then a summary. It
// holds nothing that could move a terminal's cursor.
std::string LintText(const LintResult& result, bool color);

// {"findings": [...], "unread": [{"file", "problem"}], "suppressed": 0, "left_out": 0, "fixed": []}
std::string LintJson(const LintResult& result, std::span<const std::string> fixed);

// "x.yaml: bad YAML", without naming the file twice.
std::string ToText(const UnreadFile& file);

}  // namespace fathom
