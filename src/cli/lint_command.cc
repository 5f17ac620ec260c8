// fathom lint: which KV-routing mistakes are in these files?
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cli/command.h"
#include "diagnose/lint/file_rewrite.h"
#include "diagnose/lint/fixed_files.h"
#include "diagnose/lint/lint_report.h"
#include "diagnose/lint/source_list.h"

namespace fathom {
namespace {

void LintNote(std::string_view what) { fmt::print(stderr, "fathom lint: {}\n", what); }

void PrintReport(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int Misused(std::string_view what) {
  LintNote(what);
  return kExitUsage;
}

bool WantsColor() { return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr; }

class Linting {
 public:
  explicit Linting(const Settings& settings)
      : diff_(settings.Flag("diff")),
        fix_(settings.Flag("fix")),
        json_(settings.Choice("format") == "json"),
        docs_(settings.Text("docs-url")),
        sources_(ReadSources(settings.Files("files"))) {}

  int Run() {
    if (diff_ || fix_) {
      FixedFiles fixed = FixFiles(sources_.files);
      // Findings of the unchanged files: the problems that --diff shows are still in them.
      if (!fix_) fixed.left = Lint(sources_.files);
      if (diff_) ShowChanges(fixed.files);
      if (fix_) Write(fixed);
      result_ = std::move(fixed.left);
    } else {
      result_ = Lint(sources_.files);
    }
    result_.unread.insert(result_.unread.begin(), sources_.unread.begin(), sources_.unread.end());
    Show();
    return !result_.unread.empty()    ? kExitUnseen
           : result_.findings.empty() ? kExitFine
                                      : kExitFailed;
  }

 private:
  void ShowChanges(const std::vector<SourceFile>& fixed) const {
    for (size_t i = 0; i < fixed.size(); ++i) {
      PrintReport(UnifiedDiff(sources_.files[i], fixed[i].text));
    }
  }

  void Write(FixedFiles& fixed) {
    for (size_t i = 0; i < fixed.files.size(); ++i) {
      const SourceFile& before = sources_.files[i];
      const SourceFile& after = fixed.files[i];
      if (before.text == after.text) continue;
      if (const auto done = RewriteFile(after.name, before.text, after.text)) {
        fixed_.push_back(after.name);
      } else {
        fixed.left.unread.push_back({after.name, "cannot be written: " + done.error().what});
      }
    }
  }

  void Show() const {
    if (json_) return PrintReport(LintJson(result_, fixed_, docs_));
    for (const UnreadFile& file : result_.unread) LintNote(ToText(file));
    if (diff_) return;
    for (const std::string& name : fixed_) PrintReport(fmt::format("fixed {}\n", name));
    PrintReport(LintText(result_, WantsColor(), docs_));
  }

  const bool diff_;
  const bool fix_;
  const bool json_;
  const DocsLinks docs_;
  const Sources sources_;
  LintResult result_;
  std::vector<std::string> fixed_;
};

}  // namespace

int RunLint(const Settings& settings) {
  const std::vector<std::string>& files = settings.Files("files");
  if (files.empty()) return Misused("no files given: fathom lint FILE... (- is standard input)");
  if (settings.Flag("diff") && settings.Choice("format") == "json") {
    return Misused("--diff prints a diff and nothing else; the JSON has the diff of each fix");
  }
  if (settings.Flag("fix") && !settings.OriginOf("fix").starts_with("flag")) {
    return Misused("--fix writes files, so it must be given on the command line");
  }
  if (settings.Flag("fix") && std::ranges::find(files, "-") != files.end()) {
    return Misused("--fix cannot write standard input; --diff shows the change");
  }
  return Linting(settings).Run();
}

}  // namespace fathom
