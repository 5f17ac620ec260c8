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

std::string_view Name(FilesOrigin origin) {
  switch (origin) {
    case FilesOrigin::kFound:
      return "found";
    case FilesOrigin::kDownloaded:
      return "downloaded";
    case FilesOrigin::kNamed:
      break;
  }
  return "named";
}

const KnownFiles* ModelShelf::Find(std::string_view model, std::string_view base) const {
  auto found = models_.find(model);
  if (found == models_.end() && !base.empty()) found = models_.find(base);
  if (found == models_.end()) found = models_.find("");
  return found == models_.end() ? nullptr : &found->second;
}

Result<std::vector<ModelLibrary::Named>> ModelLibrary::Plan(
    std::span<const std::string> models, std::span<const std::string> tokenizers) {
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
  std::vector<Named> plan;
  plan.reserve(wanted.size());
  for (auto& [model, paths] : wanted) plan.push_back({model, std::move(paths)});
  return plan;
}

Result<ModelLibrary> ModelLibrary::Load(std::span<const std::string> models,
                                        std::span<const std::string> tokenizers) {
  TRY(const std::vector<Named> plan, Plan(models, tokenizers));
  ModelLibrary library;
  for (const Named& named : plan) TRY_VOID(library.Add(named));
  return library;
}

ModelLibrary ModelLibrary::Of(std::shared_ptr<const LanguageModel> model) {
  ModelLibrary library;
  const std::lock_guard lock(library.state_->mutex);
  library.Publish("", {.model = std::move(model)});
  return library;
}

Result<void> ModelLibrary::Add(const Named& named, FilesOrigin origin, std::string found_by) {
  const ModelPaths& paths = named.paths;
  KnownFiles files{.origin = origin,
                   .path = paths.tokenizer.empty() ? paths.model : paths.tokenizer,
                   .found_by = std::move(found_by)};
  const std::pair key(paths.model, paths.tokenizer);
  {
    const std::lock_guard lock(state_->mutex);
    if (const auto known = state_->by_path.find(key); known != state_->by_path.end()) {
      files.model = known->second;
    }
  }
  // Without the lock: a large vocabulary takes a second.
  if (!files.model) {
    auto fresh = LanguageModel::Load(paths);
    if (!fresh && fresh.error().blame != Blame::kPeer) return std::unexpected(fresh.error());
    if (fresh) {
      files.model = *std::move(fresh);
    } else {
      files.problem = std::move(fresh).error().what;
    }
  }
  if (files.model) files.problem = files.model->template_problem();
  const std::lock_guard lock(state_->mutex);
  if (files.model) state_->by_path[key] = files.model;
  // Without a model, too: another model's files are no substitute.
  Publish(named.model, std::move(files));
  return {};
}

bool ModelLibrary::Put(const std::string& model, KnownFiles files) {
  const std::lock_guard lock(state_->mutex);
  const auto& known = state_->shelf->all();
  const auto own = known.find(model);
  if (known.contains("") || (own != known.end() && own->second.origin != FilesOrigin::kFound)) {
    return false;
  }
  Publish(model, std::move(files));
  return true;
}

void ModelLibrary::Publish(const std::string& model, KnownFiles files) {
  auto next = std::make_shared<ModelShelf>(*state_->shelf);
  next->models_[model] = std::move(files);
  state_->shelf = std::move(next);
  state_->version.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<const ModelShelf> ModelLibrary::Current() const {
  const std::lock_guard lock(state_->mutex);
  return state_->shelf;
}

std::shared_ptr<const LanguageModel> ModelLibrary::Find(std::string_view model,
                                                        std::string_view base) const {
  const auto shelf = Current();
  const KnownFiles* const files = shelf->Find(model, base);
  return files == nullptr ? nullptr : files->model;
}

}  // namespace fathom
