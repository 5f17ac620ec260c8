// Which fenced blocks does a Markdown text have?
#pragma once

#include <string_view>
#include <vector>

#include "diagnose/manifest/passage.h"

namespace fathom {

struct FencedBlock {
  std::string_view language;  // "yaml"; empty: none is named
  Passage text;
};

// A block that is never closed ends with the text.
std::vector<FencedBlock> FencedBlocks(const Passage& markdown);

}  // namespace fathom
