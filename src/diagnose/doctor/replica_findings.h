// What keeps a running Fathom from sharing with the other routers of its group, as findings.
#pragma once

#include <vector>

#include "diagnose/doctor/router_look.h"
#include "diagnose/findings/finding.h"

namespace fathom {

// Empty: it is in no group, or the group is well.
std::vector<Finding> ReplicaFindings(const RouterLook& router);

}  // namespace fathom
