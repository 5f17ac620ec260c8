// What has been found so far, each thing once?
//
// Several sources see the same fault: a manifest the setting, a log its traces, an engine the
// number. One finding per id gathers them. Symptoms (an empty index, slow follow-up turns) become
// evidence of the cause that explains them, and stand by themselves only where nothing does.
//
// Memory  At most kMaxEvidence sentences, kMaxSubjects names and kMaxFixes fixes per finding;
// beyond
//         that they are counted.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/findings/finding.h"

namespace fathom {

class FindingBook {
 public:
  static constexpr size_t kMaxEvidence = 12;
  static constexpr size_t kMaxSubjects = 4;
  static constexpr size_t kMaxFixes = 8;

  void Add(Finding finding);
  bool Has(FindingId id) const { return pages_[static_cast<size_t>(id)].has_value(); }

  // By rank.
  std::vector<Finding> Take();

 private:
  struct Page {
    Finding finding;
    std::vector<std::string> subjects;
    size_t evidence = 0;  // how much there was
  };

  static void Merge(Page& page, Finding&& finding);
  static void Finish(Page& page);
  // The page of a cause that is as grave as the symptom and explains it, if there is one.
  Page* Explanation(Severity symptom);
  void FoldSymptoms();

  std::array<std::optional<Page>, kFindingIds> pages_;
};

// Whether a finding of that kind only shows that something else is wrong.
bool IsSymptom(FindingId id);

}  // namespace fathom
