// fathom lint: which KV-routing traps are in these files?
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "app/command.h"
#include "lint/file_rewrite.h"
#include "lint/lint_report.h"
#include "lint/mending.h"
#include "lint/source_list.h"

namespace fathom {
namespace {

void Note(std::string_view what) { fmt::print(stderr, "fathom lint: {}\n", what); }

void Print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int Misused(std::string_view what) {
  Note(what);
  return kExitUsage;
}

bool WantsColor() { return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr; }

class Linting {
 public:
  explicit Linting(const Settings& settings)
      : diff_(settings.Flag("diff")),
        fix_(settings.Flag("fix")),
        json_(settings.Choice("format") == "json"),
        sources_(ReadSources(settings.Files("files"))) {}

  int Run() {
    if (diff_ || fix_) {
      Mended mended = Mend(sources_.files);
      // Before they are mended: what --diff shows is still wrong in the files.
      if (!fix_) mended.left = Lint(sources_.files);
      if (diff_) ShowChanges(mended.files);
      if (fix_) Write(mended);
      result_ = std::move(mended.left);
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
  void ShowChanges(const std::vector<SourceFile>& mended) const {
    for (size_t i = 0; i < mended.size(); ++i) {
      std::string_view name = mended[i].name;
      // `patch -p1` in the root folder finds an absolute name.
      name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
      Print(UnifiedDiff(name, sources_.files[i].text, mended[i].text));
    }
  }

  void Write(Mended& mended) {
    for (size_t i = 0; i < mended.files.size(); ++i) {
      const SourceFile& before = sources_.files[i];
      const SourceFile& after = mended.files[i];
      if (before.text == after.text) continue;
      if (const auto done = RewriteFile(after.name, before.text, after.text)) {
        fixed_.push_back(after.name);
      } else {
        mended.left.unread.push_back({after.name, "cannot be written: " + done.error().what});
      }
    }
  }

  void Show() const {
    if (json_) return Print(LintJson(result_, fixed_));
    for (const UnreadFile& file : result_.unread) Note(ToText(file));
    if (diff_) return;
    for (const std::string& name : fixed_) Print(fmt::format("fixed {}\n", name));
    Print(LintText(result_, WantsColor()));
  }

  const bool diff_;
  const bool fix_;
  const bool json_;
  const Sources sources_;
  LintResult result_;
  std::vector<std::string> fixed_;
};

}  // namespace

int RunLint(const Settings& settings) {
  const std::vector<std::string>& files = settings.Files("files");
  if (files.empty()) return Misused("which files? fathom lint FILE... (- is standard input)");
  if (settings.Flag("diff") && settings.Choice("format") == "json") {
    return Misused("--diff prints a diff and nothing else; the JSON has the diff of each fix");
  }
  if (settings.Flag("fix") && !settings.OriginOf("fix").starts_with("flag")) {
    return Misused("--fix writes files, so it must stand on the command line");
  }
  if (settings.Flag("fix") && std::ranges::find(files, "-") != files.end()) {
    return Misused("--fix cannot write standard input; --diff shows the change");
  }
  return Linting(settings).Run();
}

}  // namespace fathom
