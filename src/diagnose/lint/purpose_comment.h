// Is it wrong on purpose?
//
//   # fathom-lint: wrong on purpose: block-size-missing (the page shows what happens then)
//   <!-- fathom-lint: wrong on purpose -->
//
// Ids are separated by commas or spaces; without any, all rules are meant. What it covers depends
// on where it stands: before everything else, the whole file; at the end of a line, that line; on a
// line of its own, the object that begins below it: a YAML node with all that is indented under it,
// the document where it begins one, a command with its continuation lines, a fenced block.
//
// Errors  A comment that begins with fathom-lint: and goes on in another way, or names a rule that
//         there is not: it covers nothing, and is told as a problem, because somebody relies on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/findings/finding.h"
#include "diagnose/manifest/deployment_reader.h"
#include "diagnose/manifest/source_file.h"

namespace fathom {

class PurposeComments {
 public:
  explicit PurposeComments(const SourceFile& file);

  bool Cover(const Finding& finding) const;
  const std::vector<UnreadFile>& problems() const { return problems_; }

 private:
  struct Comment {
    uint32_t first_line;
    uint32_t last_line;
    std::vector<FindingId> ids;  // empty: all
  };

  std::vector<Comment> comments_;
  std::vector<UnreadFile> problems_;
};

}  // namespace fathom
