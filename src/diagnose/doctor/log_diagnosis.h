// What do the logs prove?
#pragma once

#include "diagnose/doctor/case_file.h"
#include "diagnose/doctor/finding_book.h"

namespace fathom {

void DiagnoseLog(const ReadLog& log, FindingBook& book);

}  // namespace fathom
