#include "text/model/model_library.h"

#include <filesystem>
#include <utility>

namespace fathom {
namespace {

// "MODEL=PATH", unless there is a file of that name.
std::pair<std::string, std::string> Split(const std::string& entry) {
  std::error_code ignored;
  const size_t equals = entry.find('=');
  if (equals == std::string::npos || std::filesystem::exists(entry, ignored)) return {"", entry};
  return {entry.substr(0, equals), entry.substr(equals + 1)};
}

std::unexpected<Error> TwoPaths(std::string_view option, std::string_view model) {
  return Fail(Blame::kCaller, "{} names two paths for {}", option,
              model.empty() ? "all models" : model);
}

}  // namespace

Result<ModelLibrary> ModelLibrary::Load(std::span<const std::string> models,
                                        std::span<const std::string> tokenizers) {
  std::map<std::string, ModelPaths> wanted;
  for (const std::string& entry : models) {
    auto [model, path] = Split(entry);
    if (!wanted[model].model.empty()) return TwoPaths("model-path", model);
    wanted[model].model = std::move(path);
  }
  for (const std::string& entry : tokenizers) {
    auto [model, path] = Split(entry);
    if (!wanted[model].tokenizer.empty()) return TwoPaths("tokenizer-path", model);
    wanted[model].tokenizer = std::move(path);
  }
  // A tokenizer of its own goes with the folder that is for all.
  if (const auto all = wanted.find(""); all != wanted.end()) {
    for (auto& [model, paths] : wanted) {
      if (paths.model.empty()) paths.model = all->second.model;
    }
  }
  ModelLibrary library;
  for (const auto& [model, paths] : wanted) TRY_VOID(library.Add(model, paths));
  return library;
}

ModelLibrary ModelLibrary::Of(std::shared_ptr<const LanguageModel> model) {
  ModelLibrary library;
  library.models_[""] = std::move(model);
  return library;
}

Result<void> ModelLibrary::Add(const std::string& model, const ModelPaths& paths) {
  std::shared_ptr<const LanguageModel>& loaded = by_path_[{paths.model, paths.tokenizer}];
  Entry entry{.model = model, .path = paths.tokenizer.empty() ? paths.model : paths.tokenizer};
  if (!loaded) {
    auto fresh = LanguageModel::Load(paths);
    if (!fresh && fresh.error().blame != Blame::kPeer) return std::unexpected(fresh.error());
    if (fresh) {
      loaded = *std::move(fresh);
    } else {
      entry.problem = std::move(fresh).error().what;
    }
  }
  entry.usable = loaded != nullptr;
  // Null, too: another model's files are no substitute.
  models_[model] = loaded;
  if (loaded) entry.problem = loaded->template_problem();
  entries_.push_back(std::move(entry));
  return {};
}

std::shared_ptr<const LanguageModel> ModelLibrary::Find(std::string_view model,
                                                        std::string_view base) const {
  auto found = models_.find(model);
  if (found == models_.end() && !base.empty()) found = models_.find(base);
  if (found == models_.end()) found = models_.find("");
  return found == models_.end() ? nullptr : found->second;
}

}  // namespace fathom
