#include "diagnose/doctor/diagnosis.h"

#include <fmt/format.h>

#include <utility>

#include "diagnose/doctor/finding_book.h"
#include "diagnose/doctor/live_diagnosis.h"
#include "diagnose/doctor/log_diagnosis.h"
#include "diagnose/doctor/memory_diagnosis.h"
#include "diagnose/doctor/probe_diagnosis.h"
#include "diagnose/doctor/sections.h"
#include "diagnose/doctor/size_sightings.h"

namespace fathom {
namespace {

// What a file alone says is likely, not measured.
double UsualGain(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return 0.9;
    case Severity::kWarning:
      return 0.1;
    case Severity::kInfo:
      break;
  }
  return 0;
}

void AddLint(const CaseFile& seen, FindingBook& book) {
  for (const LintFinding& linted : seen.lint) {
    Finding finding = linted.finding;
    if (finding.gain <= 0) {
      finding.gain = UsualGain(finding.severity);
      finding.gain_basis = "from the files alone";
    }
    if (finding.id == FindingId::kBlockSizeMismatch) {
      finding.gain = 1;
      finding.gain_basis = "no block that such an engine caches can be found";
    }
    book.Add(std::move(finding));
  }
}

std::string VerdictOf(const std::vector<Finding>& findings) {
  if (findings.empty()) return "No problem was found in the sources that were checked.";
  const Finding& first = findings.front();
  const std::string_view state = first.severity == Severity::kError
                                     ? "Cache-aware routing does not work as it should"
                                     : "Cache-aware routing works partly";
  return fmt::format("{}: {}.", state, first.message);
}

}  // namespace

Report Diagnose(const CaseFile& seen) {
  FindingBook book;
  AddLint(seen, book);
  for (const ReadLog& log : seen.logs) DiagnoseLog(log, book);
  const std::vector<SizeSighting> sizes = SightingsOf(seen);
  DiagnoseSizes(sizes, book);
  if (seen.live.router) DiagnoseRouter(*seen.live.router, book);
  if (seen.live.dynamo) DiagnoseDynamo(*seen.live.dynamo, book);
  for (const LookedAtWorker& worker : seen.live.workers) {
    DiagnoseWorker(worker, seen.live.workers.size(), book);
  }
  const std::vector<MemoryCase> memory = MemoryCasesOf(seen);
  DiagnoseMemory(seen, memory, book);
  if (seen.probe) DiagnoseProbe(*seen.probe, book);

  Report report;
  for (Finding& finding : book.Take()) {
    report.findings.push_back(FitToPassOn(std::move(finding)));
  }
  report.verdict = VerdictOf(report.findings);
  report.sections = {ConfigurationSection(seen, sizes), SyncSection(seen),
                     MemorySection(seen, memory)};
  return report;
}

}  // namespace fathom
