#include "router/library/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "router/library/small_file.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestEtag = 128;

// "W/" and quotes are not part of it.
std::string_view BlobName(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"')) {
    etag = etag.substr(1, etag.size() - 2);
  }
  const bool fine =
      !etag.empty() && etag.size() <= kLongestEtag && std::ranges::all_of(etag, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
      });
  return fine ? etag : std::string_view();
}

Result<void> In(const fs::path& path, Result<void> result) {
  if (!result) return std::unexpected(std::move(result).error().In(path.string()));
  return result;
}

Result<void> MakeFolder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return Fail(Blame::kCaller, "{}: {}", path.string(), error.message());
  return {};
}

}  // namespace

std::string HubCache::FolderOf(std::string_view name) const {
  return fmt::format("{}/{}", root_, HubRef::FolderOf(name));
}

std::string HubCache::Snapshot(std::string_view name, std::string_view commit) const {
  return fmt::format("{}/snapshots/{}", FolderOf(name), commit);
}

std::optional<std::string> HubCache::Complete(std::string_view name,
                                              std::string_view commit) const {
  std::string folder = Snapshot(name, commit);
  std::error_code ignored;
  if (!fs::is_regular_file(folder + "/tokenizer.json", ignored)) return std::nullopt;
  return folder;
}

std::optional<std::string> HubCache::Find(const HubRef& ref) const {
  if (IsCommit(ref.revision)) return Complete(ref.name, ref.revision);
  constexpr size_t kLongest = 256;
  const std::string path = fmt::format("{}/refs/{}", FolderOf(ref.name), ref.revision);
  const auto text = ReadRegularFile(path, kLongest);
  if (!text) return std::nullopt;
  const std::string_view commit = Trim(*text);
  return IsCommit(commit) ? Complete(ref.name, commit) : std::nullopt;
}

std::optional<std::string> HubCache::FindAny(const std::string& name) const {
  if (auto main = Find({.name = name})) return main;
  std::error_code error;
  std::optional<std::string> only;
  fs::directory_iterator each(FolderOf(name) + "/snapshots", error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    const std::string commit = each->path().filename().string();
    auto folder = IsCommit(commit) ? Complete(name, commit) : std::nullopt;
    if (!folder) continue;
    if (only) return std::nullopt;  // which one the engine uses is not known
    only = std::move(folder);
  }
  return only;
}

Result<void> HubCache::Store(const HubRef& ref, const std::string& commit, const std::string& file,
                             std::string_view etag, std::string_view content) const {
  const fs::path snapshot = Snapshot(ref.name, commit);
  const fs::path blobs = FolderOf(ref.name) + "/blobs";
  TRY_VOID(MakeFolder(snapshot));
  const std::string_view name = BlobName(etag);
  if (name.empty()) return In(snapshot, WriteWhole((snapshot / file).string(), content));
  TRY_VOID(MakeFolder(blobs));
  TRY_VOID(In(blobs, WriteWhole((blobs / name).string(), content)));
  return In(snapshot, LinkWhole((snapshot / file).string(), fmt::format("../../blobs/{}", name)));
}

Result<void> HubCache::SetRef(const HubRef& ref, const std::string& commit) const {
  if (IsCommit(ref.revision)) return {};
  const fs::path path = fmt::format("{}/refs/{}", FolderOf(ref.name), ref.revision);
  TRY_VOID(MakeFolder(path.parent_path()));
  return In(path, WriteWhole(path.string(), commit));
}

}  // namespace fathom
