#include "diagnose/lint/source_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/file.h"
#include "diagnose/manifest/patch_names.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

bool IsDeploymentFile(const fs::path& path) {
  constexpr std::array<std::string_view, 6> kEndings = {".yaml", ".yml", ".json",
                                                        ".toml", ".sh",  ".md"};
  return std::ranges::find(kEndings, path.extension().string()) != kEndings.end();
}

bool IsHidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

class Reading {
 public:
  Sources Take() && { return std::move(sources_); }

  void Add(const std::string& name) {
    std::error_code problem;
    if (name != "-" && fs::is_directory(name, problem)) {
      Walk(name);
    } else {
      Read(name);
    }
  }

 private:
  void Walk(const std::string& folder) {
    std::error_code problem;
    std::vector<std::string> found;
    auto entry = fs::recursive_directory_iterator(folder, problem);
    for (; !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
      std::error_code unknown;
      if (entry->is_directory(unknown) && IsHidden(entry->path())) {
        entry.disable_recursion_pending();
      } else if (entry->is_regular_file(unknown) && IsDeploymentFile(entry->path())) {
        found.push_back(entry->path().lexically_normal().string());
      }
      if (found.size() > kMaxSources) break;
    }
    if (problem) sources_.unread.push_back({folder, problem.message()});
    std::ranges::sort(found);
    for (const std::string& name : found) Read(name);
  }

  void Read(const std::string& name) {
    if (!seen_.insert(name).second || full_) return;
    if (sources_.files.size() == kMaxSources || bytes_ > kMaxSourceBytes) {
      full_ = true;
      sources_.unread.push_back(
          {name,
           fmt::format("this file and the rest were not read: at most {} files and {} MiB at a "
                       "time",
                       kMaxSources, kMaxSourceBytes >> 20)});
      return;
    }
    auto text = ReadFile(name == "-" ? "/dev/stdin" : name);
    const std::string shown = name == "-" ? std::string(kStdinName) : name;
    if (!text) {
      sources_.unread.push_back({shown, text.error().what});
      return;
    }
    bytes_ += text->size();
    sources_.files.push_back({shown, *std::move(text)});
  }

  Sources sources_;
  std::set<std::string> seen_;
  size_t bytes_ = 0;
  bool full_ = false;
};

}  // namespace

Sources ReadSources(std::span<const std::string> names) {
  Reading reading;
  for (const std::string& name : names) reading.Add(name);
  Sources sources = std::move(reading).Take();
  NameForPatch(sources.files);
  return sources;
}

}  // namespace fathom
