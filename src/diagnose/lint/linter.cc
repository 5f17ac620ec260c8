#include "diagnose/lint/linter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "diagnose/lint/plan.h"
#include "diagnose/lint/purpose_comment.h"
#include "diagnose/lint/rules.h"
#include "diagnose/manifest/collection.h"
#include "diagnose/manifest/fleet_join.h"

namespace fathom {
namespace {

constexpr std::array kRules = {CheckBlockSizes, CheckPublishers,  CheckEndpoints,
                               CheckCaches,     CheckPorts,       CheckServices,
                               CheckRouters,    CheckWorkerSizes, CheckNotes};

// As SortFindings() does; nothing here has a gain.
void RankAll(LintFindings& findings) {
  std::ranges::sort(findings, {}, [](const LintFinding& found) {
    const Finding& finding = found.finding;
    return std::tie(finding.severity, finding.id, finding.place, finding.message);
  });
}

// Leaves out what comments in the files say is wrong on purpose.
class PurposeFilter {
 public:
  explicit PurposeFilter(std::span<const SourceFile> files) {
    for (const SourceFile& file : files) comments_.try_emplace(file.name, file);
  }

  void Apply(LintResult& result) const {
    result.on_purpose = std::erase_if(result.findings, [this](const LintFinding& found) {
      const auto comments = comments_.find(found.finding.place.file);
      return comments != comments_.end() && comments->second.Cover(found.finding);
    });
    for (const auto& [name, comments] : comments_) {
      const auto& problems = comments.problems();
      result.unread.insert(result.unread.end(), problems.begin(), problems.end());
    }
  }

 private:
  std::map<std::string_view, PurposeComments> comments_;
};

}  // namespace

LintResult Lint(std::span<const SourceFile> files) {
  LintResult result;
  ReadDeployment read = ReadDeploymentFiles(files);
  result.unread = std::move(read.unread);
  Join(JoinHalves(read.deployment, JoinScope::kFolder), read.deployment);
  const Plan plan(read.deployment, files);
  if (read.deployment.programs.size() >= kMaxPrograms) {
    result.unread.push_back({"", fmt::format("there are {} programs or more: the others were not "
                                             "checked; check fewer files at a time",
                                             kMaxPrograms)});
  }
  for (const auto& rule : kRules) rule(plan, result.findings);
  PurposeFilter(files).Apply(result);
  RankAll(result.findings);
  if (result.findings.size() > kMaxFindings) {
    result.left_out = result.findings.size() - kMaxFindings;
    result.findings.resize(kMaxFindings);
  }
  return result;
}

}  // namespace fathom
