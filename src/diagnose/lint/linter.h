// Which KV-routing traps are in these deployment files?
//
// Looks at text only: nothing is asked, nothing is written. docs/lint.md lists the rules.
//
// Memory  At most kMaxFindings are kept; the others are counted.
// Errors  A file that cannot be read as what it is, or a comment of ours that makes no sense, is in
//         `unread`. The other files are checked all the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "diagnose/findings/finding.h"
#include "diagnose/manifest/deployment_reader.h"
#include "diagnose/manifest/edit.h"
#include "diagnose/manifest/source_file.h"

namespace fathom {

constexpr size_t kMaxFindings = 1000;

// A finding, and the edits that make the first of its fixes; none where a person has to decide.
struct LintFinding {
  Finding finding;
  std::vector<TextEdit> edits;
};

struct LintResult {
  std::vector<LintFinding> findings;  // by rank, each with its fixes and their diffs
  std::vector<UnreadFile> unread;
  uint64_t on_purpose = 0;  // findings of what a comment says is wrong on purpose
  uint64_t left_out = 0;    // findings beyond kMaxFindings
};

LintResult Lint(std::span<const SourceFile> files);

}  // namespace fathom
