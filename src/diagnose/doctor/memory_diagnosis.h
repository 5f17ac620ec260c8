// Is there memory enough for what conversations leave behind?
#pragma once

#include <vector>

#include "diagnose/doctor/finding_book.h"
#include "diagnose/doctor/memory_case.h"

namespace fathom {

void DiagnoseMemory(const CaseFile& seen, const std::vector<MemoryCase>& cases, FindingBook& book);

// "470,768"
std::string Thousands(double number);

}  // namespace fathom
