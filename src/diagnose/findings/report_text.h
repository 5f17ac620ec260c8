// How does a report look in a terminal?
//
// Verdict, findings by rank, the parts with what was seen, the fixes, what was looked at and sent.
// Nothing from outside can control the terminal (shown_text.h). Lines keep to the width (at least
// 40), except for what is there to be copied: settings, diffs, and words that have no space in
// them.
#pragma once

#include <string>

#include "diagnose/findings/report.h"
#include "diagnose/findings/text_style.h"

namespace fathom {

std::string ReportText(const Report& report, const TextStyle& style);

}  // namespace fathom
