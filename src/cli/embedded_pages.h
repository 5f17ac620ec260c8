// Which pages of docs/ does the binary contain?
//
// The source is written at build time by cmake/embed_pages.cmake: everything below docs/ except
// docs/design/ and ARCHITECTURE.md, which are for contributors, and the pages that the program
// generates from its own tables.
//
// Memory  Everything points into the program text and is always valid.
#pragma once

#include <span>
#include <string_view>

namespace fathom {

struct EmbeddedPage {
  std::string_view path;                     // below docs/: "runbooks/no-events.md"
  std::span<const std::string_view> pieces;  // the text, in order
};

// Sorted by path.
std::span<const EmbeddedPage> EmbeddedPages();

}  // namespace fathom
