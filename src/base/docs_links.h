// How does a message name a page of the documentation?
//
// With a base URL (--docs-url), by the page's URL. Without one, by the command that prints the
// page: every binary contains its own pages, so this works wherever the message is read.
#pragma once

#include <string>
#include <string_view>

namespace fathom {

// The name of a page in `fathom docs NAME`: its file's name without .md; for a README its folder's.
// `page` is a path below docs/: "runbooks/no-events.md" is "no-events", "moving/README.md" is
// "moving", "README.md" is "README".
std::string_view PageName(std::string_view page);

class DocsLinks {
 public:
  // An empty URL: pages are named by the command. A slash at the end is ignored.
  explicit DocsLinks(std::string_view url = "");

  // `page` is a path below docs/. Empty gives empty.
  std::string To(std::string_view page) const;

 private:
  std::string url_;  // ends with a slash, unless it is empty
};

}  // namespace fathom
