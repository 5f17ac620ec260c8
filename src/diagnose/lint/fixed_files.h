// What do the files look like when all that can be fixed safely is fixed?
//
// Mending one thing may show the next, or touch the same words, so files are linted and edited in
// turns until nothing changes. An edit after which a file cannot be read is taken back.
#pragma once

#include <vector>

#include "diagnose/lint/linter.h"

namespace fathom {

struct FixedFiles {
  std::vector<SourceFile> files;  // as they came, with the text that they should have
  LintResult left;                // what is still wrong in them
};

FixedFiles FixFiles(std::vector<SourceFile> files);

}  // namespace fathom
