// How does a report look in JSON?
//
//   {"version", "time", "verdict", "status": "healthy" | "findings" | "unseen",
//    "findings": [...],
//    "sections": [{"part", "lines", "tables": [{"title", "columns", "rows": [["text", ...], ...]}],
//                  "plots": [{"kind": "bars" | "lines", "title", "x_label", "y_label",
//                             "categories", "series": [{"name", "x", "y"}], "caption"}],
//                  "missing"}],
//    "looked_at": [{"what", "seen", "outcome"}], "sent": [{"method", "target", "times"}]}
//
// Findings (finding_json.h) stand by rank. `unseen`: no findings, and not everything could be
// looked at. One object on one line.
#pragma once

#include <string>

#include "diagnose/findings/report.h"

namespace fathom {

std::string ReportJson(const Report& report);

}  // namespace fathom
