#include "router/library/model_search.h"

#include <limits.h>

#include <algorithm>
#include <filesystem>

#include "router/library/hub_cache.h"
#include "router/library/small_file.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTokenizerFile = "tokenizer.json";

// Without links and "..". Empty: there is no such file.
std::string Resolved(const std::string& path) {
  std::error_code error;
  fs::path resolved = fs::canonical(path, error);
  return error ? std::string() : resolved.string();
}

// By its text alone.
bool BeginsWith(const std::string& path, std::string root) {
  while (root.ends_with('/')) root.pop_back();
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

bool LiesBelow(const std::string& path, const std::string& folder) {
  const std::string root = Resolved(folder);
  return !root.empty() && BeginsWith(path, root);
}

void Keep(const std::string& folder, std::string_view found_by,
          std::vector<ModelSearch::Place>& places) {
  std::error_code ignored;
  const std::string resolved = Resolved(folder);
  if (resolved.empty() || !fs::exists(fs::path(resolved) / kTokenizerFile, ignored)) return;
  const auto same = [&](const ModelSearch::Place& place) { return place.folder == resolved; };
  if (std::ranges::none_of(places, same)) places.push_back({resolved, std::string(found_by)});
}

}  // namespace

bool ModelSearch::Allows(const std::string& path) const {
  const auto holds = [&](const std::string& folder) { return LiesBelow(path, folder); };
  return std::ranges::any_of(roots_, holds) || std::ranges::any_of(caches_, holds);
}

std::vector<ModelSearch::Place> ModelSearch::Find(const std::vector<std::string>& names) const {
  std::vector<Place> places;
  for (const std::string& name : names) {
    if (IsHubName(name)) {
      FindName(name, places);
    } else if (name.starts_with('/') && name.size() < PATH_MAX && !name.contains('\0')) {
      FindPath(name, places);
    }
  }
  // A link out of the roots was the operator's own doing, but is not followed either.
  std::erase_if(places, [&](const Place& place) { return !Allows(place.folder); });
  return places;
}

void ModelSearch::FindName(const std::string& name, std::vector<Place>& places) const {
  for (const std::string& root : caches_) {
    if (const auto folder = HubCache(root).FindAny(name)) Keep(*folder, "HF cache", places);
  }
  for (const std::string& root : roots_) {
    Keep(root + "/" + name, "--model-root", places);
    if (const auto folder = HubCache(root).FindAny(name)) Keep(*folder, "--model-root", places);
    const size_t slash = name.find('/');
    if (slash != name.npos) Keep(root + name.substr(slash), "--model-root", places);
  }
}

void ModelSearch::FindPath(const std::string& path, std::vector<Place>& places) const {
  // Elsewhere the disk is not even looked at: it could be a mount that does not answer.
  const std::string plain = fs::path(path).lexically_normal().string();
  const auto mentions = [&](const std::string& folder) {
    return BeginsWith(plain, fs::path(folder).lexically_normal().string()) ||
           LiesBelow(plain, folder);
  };
  if (std::ranges::none_of(roots_, mentions) && std::ranges::none_of(caches_, mentions)) return;
  const std::string resolved = Resolved(plain);
  if (!resolved.empty() && Allows(resolved)) Keep(resolved, "path of the engine", places);
}

Result<std::string> ModelSearch::Read(const std::string& path) const {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return std::string();
  const std::string resolved = Resolved(path);
  if (resolved.empty()) return Fail(Blame::kCaller, "{}: a link to a file that is missing", path);
  if (!Allows(resolved)) {
    return Fail(Blame::kCaller, "{}: a link to {}, which is not below a --model-root", path,
                resolved);
  }
  const bool tokenizer = path.ends_with(kTokenizerFile);
  auto text = ReadRegularFile(resolved, tokenizer ? kMostTokenizerBytes : kMostBytes);
  if (!text) return std::unexpected(std::move(text).error().In(path));
  return text;
}

Result<std::shared_ptr<const LanguageModel>> ModelSearch::Load(const std::string& folder) const {
  const auto read = [this](const std::string& path) { return Read(path); };
  TRY(const ModelFiles files, ReadModelFiles({.model = folder, .tokenizer = {}}, read));
  return LanguageModel::Parse(files);
}

}  // namespace fathom
