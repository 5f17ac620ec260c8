#include "diagnose/lint/fixed_files.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fathom {
namespace {

constexpr int kMaxRounds = 8;

using Refused = std::set<std::string>;  // files whose edits broke them

// Each edit once: two findings may ask for the same.
std::vector<TextEdit> EditsOf(const LintResult& result, const Refused& refused) {
  std::vector<TextEdit> edits;
  for (const LintFinding& found : result.findings) {
    for (const TextEdit& edit : found.edits) {
      if (!refused.contains(edit.file) && std::ranges::find(edits, edit) == edits.end()) {
        edits.push_back(edit);
      }
    }
  }
  return edits;
}

bool Touch(const TextEdit& a, const TextEdit& b) {
  return a.file == b.file && a.span.offset <= b.span.offset + b.span.length &&
         b.span.offset <= a.span.offset + a.span.length;
}

// Edits that meet wait for the next round, when the first of them is in place.
std::vector<TextEdit> Apart(const std::vector<TextEdit>& edits) {
  std::vector<TextEdit> kept;
  for (const TextEdit& edit : edits) {
    if (std::ranges::none_of(kept, [&](const TextEdit& other) { return Touch(edit, other); })) {
      kept.push_back(edit);
    }
  }
  return kept;
}

std::vector<SourceFile> Edited(std::span<const SourceFile> files,
                               const std::vector<TextEdit>& edits) {
  std::vector<SourceFile> edited(files.begin(), files.end());
  for (SourceFile& file : edited) {
    std::vector<TextEdit> own;
    std::ranges::copy_if(edits, std::back_inserter(own),
                         [&](const TextEdit& edit) { return edit.file == file.name; });
    if (!own.empty()) file.text = Apply(file, own);
  }
  return edited;
}

std::set<std::string> Unread(const LintResult& result) {
  std::set<std::string> names;
  for (const UnreadFile& file : result.unread) names.insert(file.name);
  return names;
}

}  // namespace

FixedFiles FixFiles(std::vector<SourceFile> files) {
  FixedFiles fixed{std::move(files), {}};
  fixed.left = Lint(fixed.files);
  Refused refused;
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::vector<TextEdit> edits = Apart(EditsOf(fixed.left, refused));
    if (edits.empty()) break;
    std::vector<SourceFile> edited = Edited(fixed.files, edits);
    LintResult left = Lint(edited);
    const auto before = Unread(fixed.left);
    bool broken = false;
    for (const std::string& name : Unread(left)) {
      if (!before.contains(name)) broken = refused.insert(name).second || broken;
    }
    if (broken) continue;
    fixed.files = std::move(edited);
    fixed.left = std::move(left);
  }
  return fixed;
}

}  // namespace fathom
