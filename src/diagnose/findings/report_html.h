// How does a report look as a page?
//
// One self-contained file to be mailed and printed: style and plots are in it, it fetches nothing
// and runs nothing (its own policy forbids both). Everything from outside is escaped.
#pragma once

#include <string>

#include "diagnose/findings/report.h"

namespace fathom {

std::string ReportHtml(const Report& report);

}  // namespace fathom
