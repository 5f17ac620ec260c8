#include "diagnose/doctor/finding_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace fathom {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::ranges::find(list, text) != list.end();
}

// Two diffs of one file, each against the file as it was read, do not apply one after the other.
bool TouchOneFile(std::string_view a, std::string_view b) {
  const size_t header = b.find("--- ");
  if (header == b.npos) return false;
  return a.contains(b.substr(header, b.find('\n', header) - header + 1));
}

// The same fix for another file brings its diff.
void MergeFix(std::vector<Fix>& fixes, Fix&& fix) {
  const auto same = std::ranges::find_if(fixes, [&](const Fix& known) {
    return known.what == fix.what && known.setting == fix.setting;
  });
  if (same == fixes.end()) {
    if (fixes.size() < FindingBook::kMaxFixes) fixes.push_back(std::move(fix));
    return;
  }
  if (!TouchOneFile(same->diff, fix.diff)) same->diff += fix.diff;
  if (same->cost.empty()) same->cost = std::move(fix.cost);
  if (same->verify.empty()) same->verify = std::move(fix.verify);
}

}  // namespace

bool IsSymptom(FindingId id) {
  return id == FindingId::kIndexEmpty || id == FindingId::kEventsNotApplied ||
         id == FindingId::kFollowUpsSlow || id == FindingId::kWastedPrefill;
}

void FindingBook::Add(Finding finding) {
  auto& page = pages_[static_cast<size_t>(finding.id)];
  if (!page) {
    page = Page{};
    page->finding.id = finding.id;
    page->finding.severity = Severity::kInfo;
  }
  Merge(*page, std::move(finding));
}

void FindingBook::Merge(Page& page, Finding&& added) {
  Finding& kept = page.finding;
  const bool first = kept.message.empty();
  // Everything that was said in a sentence of its own stays readable as evidence.
  if (first) {
    kept.message = added.message;
    kept.why = std::move(added.why);
    kept.place = added.place;
  } else if (added.message != kept.message) {
    const std::string where = ToText(added.place);
    added.evidence.insert(added.evidence.begin(),
                          where.empty() ? added.message : added.message + " (" + where + ")");
  }
  if (!added.subject.empty() && !Contains(page.subjects, added.subject)) {
    page.subjects.push_back(std::move(added.subject));
  }
  kept.severity = std::min(kept.severity, added.severity);
  if (added.gain > kept.gain) {
    kept.gain = added.gain;
    kept.gain_basis = std::move(added.gain_basis);
  }
  if (kept.place == FilePlace{}) kept.place = std::move(added.place);
  for (std::string& sentence : added.evidence) {
    if (Contains(kept.evidence, sentence)) continue;
    ++page.evidence;
    if (kept.evidence.size() < kMaxEvidence) kept.evidence.push_back(std::move(sentence));
  }
  // Words in general are of no use beside a change to the very file.
  const auto has_diff = [](const Fix& fix) { return !fix.diff.empty(); };
  const bool with_diff = std::ranges::any_of(kept.fixes, has_diff);
  for (Fix& fix : added.fixes) {
    if (!with_diff || has_diff(fix)) MergeFix(kept.fixes, std::move(fix));
  }
}

FindingBook::Page* FindingBook::Explanation(Severity symptom) {
  // What concerns a small part of the fleet does not explain what all of it suffers from.
  constexpr double kMost = 0.5;
  Page* best = nullptr;
  for (auto& page : pages_) {
    if (!page || IsSymptom(page->finding.id) || page->finding.severity > symptom) continue;
    const Finding& cause = page->finding;
    if (cause.gain < kMost) continue;
    const auto rank = [](const Finding& finding) {
      return std::pair(finding.severity, -finding.gain);
    };
    if (best == nullptr || rank(cause) < rank(best->finding)) best = &*page;
  }
  return best;
}

void FindingBook::FoldSymptoms() {
  for (auto& page : pages_) {
    if (!page || !IsSymptom(page->finding.id)) continue;
    Page* const cause = Explanation(page->finding.severity);
    if (cause == nullptr) continue;
    Finding folded = MakeFinding(cause->finding.id, "", cause->finding.message);
    folded.severity = Severity::kInfo;
    folded.evidence.push_back(page->finding.message);
    for (std::string& sentence : page->finding.evidence)
      folded.evidence.push_back(std::move(sentence));
    Merge(*cause, std::move(folded));
    page.reset();
  }
}

void FindingBook::Finish(Page& page) {
  if (page.evidence > page.finding.evidence.size()) {
    page.finding.evidence.push_back(
        fmt::format("and {} more like these", page.evidence - page.finding.evidence.size()));
  }
  const size_t shown = std::min(page.subjects.size(), kMaxSubjects);
  page.finding.subject =
      fmt::format("{}", fmt::join(page.subjects.begin(), page.subjects.begin() + shown, ", "));
  if (page.subjects.size() > shown) {
    page.finding.subject += fmt::format(" and {} more", page.subjects.size() - shown);
  }
}

std::vector<Finding> FindingBook::Take() {
  FoldSymptoms();
  std::vector<Finding> findings;
  for (auto& page : pages_) {
    if (!page) continue;
    Finish(*page);
    findings.push_back(std::move(page->finding));
    page.reset();
  }
  SortFindings(findings);
  return findings;
}

}  // namespace fathom
