// What do the logs prove?
#pragma once

#include "doctor/case_file.h"
#include "doctor/finding_book.h"

namespace fathom {

void DiagnoseLog(const ReadLog& log, FindingBook& book);

}  // namespace fathom
