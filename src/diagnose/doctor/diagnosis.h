// What is wrong with this fleet, and what does the evidence look like?
#pragma once

#include "diagnose/doctor/case_file.h"
#include "diagnose/findings/report.h"

namespace fathom {

// Everything but version, time and what was looked at, which the caller knows.
Report Diagnose(const CaseFile& seen);

}  // namespace fathom
