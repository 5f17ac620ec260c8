#include "cli/page_shelf.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/docs_links.h"
#include "base/text.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

std::string_view WithoutAnchor(std::string_view target) {
  return target.substr(0, target.find('#'));
}

// "../../deploy/x" and "docs/../deploy/x" are the file "deploy/x".
std::string_view WithoutClimbing(std::string_view path) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view step : {"../", "./", "docs/"}) {
      if (!path.starts_with(step)) continue;
      path.remove_prefix(step.size());
      found = true;
    }
  }
  return path;
}

bool EndsWithPath(std::string_view path, std::string_view end) {
  if (!path.ends_with(end)) return false;
  return path.size() == end.size() || path[path.size() - end.size() - 1] == '/';
}

std::string UrlBelow(std::string_view base, const std::string& path) {
  std::string url(base);
  while (url.ends_with('/')) url.pop_back();
  std::string_view rest = path;
  constexpr std::string_view kDocs = "/docs";
  while (rest.starts_with("../") && url.ends_with(kDocs)) {
    url.resize(url.size() - kDocs.size());
    rest.remove_prefix(3);
  }
  return url.append("/").append(rest);
}

bool IsRelative(std::string_view target) {
  return !target.empty() && !target.starts_with('#') && !target.contains("://") &&
         !target.starts_with("mailto:") && !target.contains(' ');
}

}  // namespace

PageShelf::PageShelf(std::vector<ShelvedPage> pages, std::span<const Renamed> renamed)
    : pages_(std::move(pages)), renamed_(renamed) {}

std::optional<size_t> PageShelf::Find(std::string_view wanted) const {
  const auto named = std::ranges::find(pages_, wanted, &ShelvedPage::name);
  if (named != pages_.end() && !wanted.empty()) {
    return static_cast<size_t>(named - pages_.begin());
  }
  if (const Renamed* const renaming = RenamingOf(wanted)) return Find(renaming->now);
  return FindByPath(wanted);
}

const Renamed* PageShelf::RenamingOf(std::string_view wanted) const {
  const std::string_view path = WithoutAnchor(wanted);
  const auto named = [&](const Renamed& row) { return row.former == PageName(path); };
  const auto found = std::ranges::find_if(renamed_, named);
  return found == renamed_.end() ? nullptr : &*found;
}

std::optional<size_t> PageShelf::FindByPath(std::string_view wanted) const {
  const std::string_view path = WithoutClimbing(WithoutAnchor(wanted));
  if (!path.contains('.') && !path.contains('/')) return std::nullopt;
  std::optional<size_t> found;
  for (size_t i = 0; i < pages_.size(); ++i) {
    const std::string_view known = WithoutClimbing(pages_[i].path);
    if (known == path) return i;
    if (!found && EndsWithPath(known, path)) found = i;
  }
  if (found || !path.ends_with('/')) return found;
  return Find(std::string(path).append("README.md"));
}

std::vector<std::string_view> PageShelf::FolderAt(std::string_view target) const {
  std::string folder(WithoutClimbing(WithoutAnchor(target)));
  if (!folder.ends_with('/')) folder += '/';
  std::vector<std::string_view> paths;
  for (const ShelvedPage& page : pages_) {
    const std::string_view known = WithoutClimbing(page.path);
    if (folder.size() > 1 && known.starts_with(folder)) paths.push_back(known);
  }
  return paths;
}

std::string WithLinksBelow(std::string_view base, std::string_view path, std::string_view text) {
  const fs::path folder = fs::path(path).parent_path();
  std::string out;
  bool fenced = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (Trim(line).starts_with("```")) fenced = !fenced;
    for (size_t at = fenced ? line.npos : line.find("]("); at != line.npos; at = line.find("](")) {
      const size_t start = at + 2;
      const size_t close = std::min(line.find(')', start), line.size());
      const std::string_view target = line.substr(start, close - start);
      out.append(line.substr(0, start));
      out += IsRelative(target) ? UrlBelow(base, (folder / target).lexically_normal().string())
                                : std::string(target);
      line.remove_prefix(close);
    }
    out += line;
  }
  return out;
}

}  // namespace fathom
