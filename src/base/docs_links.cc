#include "base/docs_links.h"

#include <fmt/format.h>

namespace fathom {

std::string_view PageName(std::string_view page) {
  constexpr std::string_view kIndex = "/README.md";
  constexpr std::string_view kEnding = ".md";
  if (page.ends_with(kIndex)) {
    page.remove_suffix(kIndex.size());
  } else if (page.ends_with(kEnding)) {
    page.remove_suffix(kEnding.size());
  }
  return page.substr(page.rfind('/') + 1);  // npos + 1 is 0
}

DocsLinks::DocsLinks(std::string_view url) : url_(url) {
  while (url_.ends_with('/')) url_.pop_back();
  if (!url_.empty()) url_ += '/';
}

std::string DocsLinks::To(std::string_view page) const {
  if (page.empty()) return {};
  return url_.empty() ? fmt::format("fathom docs {}", PageName(page))
                      : fmt::format("{}{}", url_, page);
}

}  // namespace fathom
