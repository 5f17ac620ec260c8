// What do running routers and engines show?
#pragma once

#include "diagnose/doctor/case_file.h"
#include "diagnose/doctor/finding_book.h"

namespace fathom {

void DiagnoseRouter(const RouterLook& router, FindingBook& book);
void DiagnoseDynamo(const DynamoLook& dynamo, FindingBook& book);
// `fleet` is how many workers there are.
void DiagnoseWorker(const LookedAtWorker& worker, size_t fleet, FindingBook& book);

}  // namespace fathom
