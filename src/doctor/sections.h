// What was seen, part by part, healthy or not: the evidence that a reader can judge for himself.
#pragma once

#include <vector>

#include "doctor/case_file.h"
#include "doctor/memory_case.h"
#include "doctor/size_sightings.h"
#include "findings/report.h"

namespace fathom {

Section ConfigurationSection(const CaseFile& seen, const std::vector<SizeSighting>& sizes);
Section SyncSection(const CaseFile& seen);
Section MemorySection(const CaseFile& seen, const std::vector<MemoryCase>& cases);

}  // namespace fathom
