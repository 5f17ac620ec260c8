// Which files of a model lie in this cache, and where are new ones put?
//
// The layout is that of Hugging Face's tools, which read what is written here, and the other way
// round:
//
//   models--ORG--NAME/refs/REVISION              the commit of a branch or a tag
//   models--ORG--NAME/blobs/ETAG                 the content of files
//   models--ORG--NAME/snapshots/COMMIT/FILE      a link to its blob
//
// Threads  Any process may read and write at the same time: files appear whole.
// Errors   kCaller: the path and the reason.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "router/library/hub_name.h"

namespace fathom {

class HubCache {
 public:
  explicit HubCache(std::string root) : root_(std::move(root)) {}

  // The snapshot's folder, if it has a tokenizer: the last of the files that are stored.
  std::optional<std::string> Find(const HubRef& ref) const;
  // The revision that the engine was started with is not known: main, or the only one there is.
  std::optional<std::string> FindAny(const std::string& name) const;

  // One file of a snapshot. Without an ETag, or with one that is no file name, there is no blob.
  Result<void> Store(const HubRef& ref, const std::string& commit, const std::string& file,
                     std::string_view etag, std::string_view content) const;
  // Which commit the revision is; nothing to do for a commit.
  Result<void> SetRef(const HubRef& ref, const std::string& commit) const;

  std::string Snapshot(std::string_view name, std::string_view commit) const;
  const std::string& root() const { return root_; }

 private:
  std::string FolderOf(std::string_view name) const;
  std::optional<std::string> Complete(std::string_view name, std::string_view commit) const;

  std::string root_;
};

}  // namespace fathom
