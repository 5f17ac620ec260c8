// Which files does somebody mean who names files, folders and "-"?
//
// A folder stands for the deployment files in it and below it, sorted by name: .yaml .yml .json
// .toml .sh .md. Hidden folders, and folders behind symbolic links, are left out. A file that is
// named is read whatever it is called.
//
// Memory  At most kMaxSources files and kMaxSourceBytes of text; what is beyond is told as unread.
// Errors  Per file: what the system says about it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "diagnose/manifest/deployment_reader.h"
#include "diagnose/manifest/source_file.h"

namespace fathom {

constexpr size_t kMaxSources = 10'000;
constexpr size_t kMaxSourceBytes = size_t{1} << 30;
constexpr std::string_view kStdinName = "<stdin>";

struct Sources {
  std::vector<SourceFile> files;
  std::vector<UnreadFile> unread;
};

Sources ReadSources(std::span<const std::string> names);

}  // namespace fathom
