// How does a finding look in JSON?
//
// The one shape that `fathom doctor` and `fathom lint` print with --format json:
//
//   {"id": "block-size-mismatch", "severity": "error", "title", "part", "subject", "message",
//   "why",
//    "evidence": ["..."], "file": "agg_router.yaml", "line": 12, "fix": "Set ...",
//    "fixes": [{"what", "setting", "diff", "cost", "verify"}], "gain": 0.6, "gain_basis",
//    "docs": "fathom docs block-size-mismatch"}
//
// `file` and `line` are there only when the finding has a place; a line of 0 is the file as a
// whole. `fix` is the first of `fixes` in words, empty where there is none.
#pragma once

#include "base/docs_links.h"
#include "codec/json.h"
#include "diagnose/findings/finding.h"

namespace fathom {

void AppendFinding(JsonWriter& json, const Finding& finding, const DocsLinks& docs);

}  // namespace fathom
