// How does a report look in Markdown?
//
// GitHub's flavour, for issues and merge requests. Texts from outside are escaped, so that they
// neither format nor link anything; diffs stand in fences that they cannot close.
#pragma once

#include <string>

#include "diagnose/findings/report.h"

namespace fathom {

std::string ReportMarkdown(const Report& report);

}  // namespace fathom
