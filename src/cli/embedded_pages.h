// Which pages of docs/ does the binary contain?
//
// The source is written at build time by cmake/embed_pages.cmake: everything below docs/ except the
// pages that the program generates from its own tables, and the files that links of the pages lead
// to.
//
// Memory  Everything points into the program text and is always valid.
#pragma once

#include <span>
#include <string_view>

namespace fathom {

struct EmbeddedPage {
  std::string_view path;  // from docs/: "runbooks/no-events.md", "../deploy/docker/Dockerfile"
  std::span<const std::string_view> pieces;  // the text, in order
};

// Sorted by path.
std::span<const EmbeddedPage> EmbeddedPages();

}  // namespace fathom
