// A deployment file, as it was read.
#pragma once

#include <string>

namespace fathom {

struct SourceFile {
  std::string name;  // what messages call it
  std::string text;
  std::string graph = {};         // files of one graph deploy one fleet; empty: this file by itself
  std::string patch_name = {};    // what diffs call it; empty: its name
  std::string patch_folder = {};  // where diffs apply; empty: in the current folder
};

}  // namespace fathom
