// What did follow-up turns of the probe show?
#pragma once

#include "diagnose/doctor/finding_book.h"
#include "diagnose/doctor/probe.h"

namespace fathom {

void DiagnoseProbe(const ProbeReport& probe, FindingBook& book);

}  // namespace fathom
