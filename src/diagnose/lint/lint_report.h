// How are lint findings shown?
#pragma once

#include <span>
#include <string>

#include "base/docs_links.h"
#include "diagnose/lint/linter.h"

namespace fathom {

// For people: `file:line: severity: message [id]` with why, fix and docs below, then a summary. It
// holds nothing that could move a terminal's cursor.
std::string LintText(const LintResult& result, bool color, const DocsLinks& docs = DocsLinks());

// {"findings": [...], "unread": [{"file", "problem"}], "suppressed": 0, "left_out": 0, "fixed": []}
std::string LintJson(const LintResult& result, std::span<const std::string> fixed,
                     const DocsLinks& docs = DocsLinks());

// "x.yaml: bad YAML", without naming the file twice.
std::string ToText(const UnreadFile& file);

}  // namespace fathom
