// Which page does this name, or this link of a page, mean?
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/renamed.h"

namespace fathom {

// A file that the binary contains.
struct ShelvedPage {
  std::string_view name;  // in `fathom docs NAME`; empty: opened by its path alone
  std::string_view path;  // from docs/: "runbooks/no-events.md", "../deploy/docker/Dockerfile"
};

class PageShelf {
 public:
  explicit PageShelf(std::vector<ShelvedPage> pages, std::span<const Renamed> renamed = {});

  // By its name, or a former one, or by the target of a link: "no-events.md",
  // "../deploy/kubernetes/doctor.yaml", "runbooks/README.md#before-anything-else". The index of the
  // page.
  std::optional<size_t> Find(std::string_view wanted) const;
  // The row of a name, or of a link, that means a page by its former name; null where none does.
  const Renamed* RenamingOf(std::string_view wanted) const;
  // The paths of the files in a folder that a link leads to; empty where there is no such folder.
  std::vector<std::string_view> FolderAt(std::string_view target) const;

 private:
  std::optional<size_t> FindByPath(std::string_view wanted) const;

  std::vector<ShelvedPage> pages_;
  std::span<const Renamed> renamed_;
};

// The page with its links as URLs below `base`, which is that of docs/. Links to other hosts, links
// within the page and what stands in fenced blocks stay.
std::string WithLinksBelow(std::string_view base, std::string_view path, std::string_view text);

}  // namespace fathom
