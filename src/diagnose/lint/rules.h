// The rules, one function for each family. Each looks at the plan and adds what it finds.
#pragma once

#include <vector>

#include "diagnose/lint/linter.h"
#include "diagnose/lint/plan.h"

namespace fathom {

using LintFindings = std::vector<LintFinding>;

// block-size-mismatch, block-size-missing, block-size-conflict
void CheckBlockSizes(const Plan& plan, LintFindings& findings);
// block-size-mismatch of a worker with its own engine
void CheckWorkerSizes(const Plan& plan, LintFindings& findings);
// publisher-off, event-buffer-off
void CheckPublishers(const Plan& plan, LintFindings& findings);
// endpoint-connects, replay-missing
void CheckEndpoints(const Plan& plan, LintFindings& findings);
// prefix-caching-off, page-size-one
void CheckCaches(const Plan& plan, LintFindings& findings);
// port-collision
void CheckPorts(const Plan& plan, LintFindings& findings);
// service-hides-pods
void CheckServices(const Plan& plan, LintFindings& findings);
// block-size-note
void CheckNotes(const Plan& plan, LintFindings& findings);
// router-mode-missing, kv-events-unused
void CheckRouters(const Plan& plan, LintFindings& findings);

}  // namespace fathom
