// What does a diff call these files, so that `patch -p1` finds them?
//
// patch refuses absolute names and names with "..", so names are relative to one folder: the
// current one if all files are below it, otherwise the deepest that holds all of them, which diffs
// then name.
#pragma once

#include <span>
#include <string>

#include "diagnose/manifest/source_file.h"

namespace fathom {

// Sets patch_name and patch_folder. What is no file (standard input, an object of a cluster) keeps
// its name.
void NameForPatch(std::span<SourceFile> files);
// The same, with another folder in place of the current one.
void NameForPatch(std::span<SourceFile> files, const std::string& current_folder);

}  // namespace fathom
