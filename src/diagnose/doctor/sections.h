// What was seen, part by part, healthy or not: the evidence that a reader can judge for himself.
#pragma once

#include <vector>

#include "diagnose/doctor/case_file.h"
#include "diagnose/doctor/memory_case.h"
#include "diagnose/doctor/size_sightings.h"
#include "diagnose/findings/report.h"

namespace fathom {

Section ConfigurationSection(const CaseFile& seen, const std::vector<SizeSighting>& sizes);
// Pushed or polled, by which address: of each engine that was seen. Rows are bounded.
Table TransportTable(const CaseFile& seen);
Section SyncSection(const CaseFile& seen);
Section MemorySection(const CaseFile& seen, const std::vector<MemoryCase>& cases);

}  // namespace fathom
