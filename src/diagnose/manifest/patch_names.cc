#include "diagnose/manifest/patch_names.h"

#include <filesystem>
#include <system_error>
#include <vector>

namespace fathom {
namespace {

namespace fs = std::filesystem;

bool IsFile(const SourceFile& file) {
  return !file.name.empty() && !file.name.starts_with('<') && !file.name.starts_with("kube:");
}

bool IsBelow(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// The deepest folder at or above `from` that all of them are below.
fs::path FolderAbove(const std::vector<fs::path>& paths, fs::path from) {
  for (const fs::path& path : paths) {
    while (from.has_relative_path() && !IsBelow(path, from)) from = from.parent_path();
  }
  return from;
}

}  // namespace

void NameForPatch(std::span<SourceFile> files, const std::string& current_folder) {
  const fs::path here(current_folder);
  std::vector<fs::path> paths;
  for (const SourceFile& file : files) {
    if (IsFile(file)) paths.push_back((here / file.name).lexically_normal());
  }
  if (paths.empty()) return;
  const bool all_here = FolderAbove(paths, here) == here;
  const fs::path folder = all_here ? here : FolderAbove(paths, paths.front().parent_path());
  auto path = paths.begin();
  for (SourceFile& file : files) {
    if (!IsFile(file)) continue;
    file.patch_name = (path++)->lexically_relative(folder).string();
    file.patch_folder = all_here ? std::string() : folder.string();
  }
}

void NameForPatch(std::span<SourceFile> files) {
  std::error_code unknown;
  const fs::path here = fs::current_path(unknown);
  if (!unknown) NameForPatch(files, here.string());
}

}  // namespace fathom
