#include <cstdint>
#include <string>

#include "base/check.h"
#include "diagnose/lint/fixed_files.h"
#include "diagnose/lint/lint_report.h"

// Whatever a file holds: findings are inside it, and mending it never makes it unreadable.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // The first byte says which language it is.
  constexpr const char* kNames[] = {"x.yaml", "x.sh", "x.md", "x.toml", "x"};
  const fathom::SourceFile file{kNames[data[0] % std::size(kNames)],
                                std::string(reinterpret_cast<const char*>(data) + 1, size - 1)};
  const fathom::LintResult result = fathom::Lint({&file, 1});
  for (const fathom::LintFinding& found : result.findings) {
    CHECK(found.finding.place.file == file.name);
    CHECK(!found.finding.fixes.empty());
    for (const fathom::TextEdit& edit : found.edits) {
      CHECK(edit.span.offset + edit.span.length <= file.text.size());
    }
  }
  const std::string text = fathom::LintText(result, false);
  CHECK(text.find('\x1b') == std::string::npos);
  (void)fathom::LintJson(result, {});
  const fathom::FixedFiles fixed = fathom::FixFiles({file});
  CHECK(fixed.left.unread.size() <= result.unread.size());
  return 0;
}
