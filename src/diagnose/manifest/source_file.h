// A deployment file, as it was read.
#pragma once

#include <string>

namespace fathom {

struct SourceFile {
  std::string name;  // what messages call it
  std::string text;
  std::string graph = {};  // files of one graph deploy one fleet; empty: this file by itself
};

}  // namespace fathom
