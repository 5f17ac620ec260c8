#include "router/library/model_finder.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "codec/json.h"
#include "engine/model_name.h"

namespace fathom {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(100);
constexpr Duration kMostPerDownload = std::chrono::minutes(10);
constexpr Duration kFirstPause = std::chrono::seconds(30);
constexpr Duration kLongestPause = std::chrono::minutes(10);

bool IsReady(const Member& member) { return member.state == WorkerState::kReady; }

// The models that files are needed for, with the number of times that their workers have joined.
// An adapter has the files of its base model.
std::map<std::string, uint64_t> Sought(const FleetSnapshot& fleet) {
  std::map<std::string, uint64_t> sought;
  const auto add = [&](const std::string& model, const Member& member) {
    if (model.empty() || model.size() > kLongestModel) return;
    if (sought.size() >= ModelFinder::kMostModels && !sought.contains(model)) return;
    sought[model] += member.joined + member.lives;
  };
  for (const Member& member : fleet.members()) {
    if (!IsReady(member)) continue;
    for (const std::string& model : member.models) {
      const auto base = member.bases.find(model);
      add(base == member.bases.end() ? model : base->second, member);
    }
  }
  return sought;
}

// vLLM's card of a model: what the engine was started with.
std::string RootOf(const Member& member, const std::string& model) {
  const auto found = std::ranges::lower_bound(member.models, model);
  if (found == member.models.end() || *found != model) return "";
  const auto at = static_cast<size_t>(found - member.models.begin());
  if (at >= member.model_cards.size()) return "";
  const auto card = Json::Parse(member.model_cards[at]);
  const Json* const root = card ? card->Find("root") : nullptr;
  return root == nullptr || root->string() == nullptr ? "" : *root->string();
}

// What the engines say of their files, then the model's own name. Engines of one model may say
// different things; a few are enough.
std::vector<std::string> NamesOf(const std::string& model, const FleetSnapshot& fleet) {
  constexpr size_t kMostNames = 16;
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    const bool known = std::ranges::find(names, name) != names.end();
    if (!name.empty() && !known && names.size() < kMostNames) names.push_back(name);
  };
  for (const Member& member : fleet.members()) {
    if (names.size() >= kMostNames) break;
    if (!IsReady(member) || !member.Serves(model)) continue;
    const auto report = member.worker->report.Current();
    const bool alone = member.models.size() - member.adapters.size() == 1;
    if (report && alone) {
      add(report->tokenizer_path);
      add(report->model_path);
    }
    add(RootOf(member, model));
  }
  if (std::ranges::find(names, model) == names.end()) names.push_back(model);
  return names;
}

}  // namespace

void LogFiles(Log& log, const std::string& model, const KnownFiles& files, Duration took) {
  const std::string name = model.empty() ? "(all)" : model;
  const bool found = files.origin == FilesOrigin::kFound;
  if (!files.model && found) {
    log.Warn("Files of this model were found and cannot be used; engines are asked for tokens",
             {{"model", name}, {"path", files.path}, {"problem", files.problem}});
  } else if (!files.model) {
    log.Warn("The router cannot use this tokenizer; engines are asked for tokens",
             {{"model", name}, {"problem", files.problem}});
  } else if (!files.problem.empty()) {
    log.Warn(
        "The router tokenizes texts, but not chats: engines are asked for the tokens of "
        "chats",
        {{"model", name}, {"path", files.path}, {"problem", files.problem}});
  } else {
    log.Info("The router tokenizes prompts",
             {{"model", name},
              {"path", files.path},
              {"files", Name(files.origin)},
              {"found_by", files.found_by.empty() ? "--model-path" : files.found_by},
              {"seconds", Seconds(took)}});
  }
}

ModelFinder::ModelFinder(Options options, ModelLibrary library, const Fleet& fleet,
                         Resolver& resolver, Log& log)
    : options_(std::move(options)),
      library_(std::move(library)),
      fleet_(fleet),
      resolver_(resolver),
      log_(log),
      search_(options_.hub.caches, options_.roots) {
  library_.ExpectMore();
}

void ModelFinder::Run() {
  if (!thread_.joinable()) thread_ = std::jthread([this] { loop_.Run(); });
}

void ModelFinder::Stop() {
  loop_.Stop();
  if (thread_.joinable()) thread_.join();
}

Result<void> ModelFinder::Fetch(const std::vector<ModelLibrary::Named>& named) {
  if (named.empty()) return {};
  TRY(download_, HubDownload::Create(loop_, resolver_, options_.hub));
  std::vector<std::shared_ptr<Attempt>> attempts;
  for (const ModelLibrary::Named& entry : named) {
    TRY(HubRef ref, HubRef::Parse(entry.paths.model));
    named_.insert(entry.model);
    attempts.push_back(std::make_shared<Attempt>());
    loop_.Post([this, entry, ref = std::move(ref), attempt = attempts.back()]() mutable {
      Spawn(Keep(std::move(entry), std::move(ref), std::move(attempt)));
    });
  }
  Run();
  std::unique_lock lock(mutex_);
  const auto over = [](const auto& attempt) { return attempt->over; };
  const bool all = attempted_.wait_for(lock, options_.patience,
                                       [&] { return std::ranges::all_of(attempts, over); });
  for (const auto& attempt : attempts) {
    attempt->awaited = false;
    if (attempt->error) return std::unexpected(*attempt->error);
  }
  if (!all) {
    log_.Warn(
        "A download of model files takes longer than --hub-timeout; requests are served without "
        "them until it has ended",
        {{"seconds", Seconds(options_.patience)}});
  }
  return {};
}

Task<void> ModelFinder::Keep(ModelLibrary::Named named, HubRef ref,
                             std::shared_ptr<Attempt> attempt) {
  const std::string model = named.model.empty() ? "(all)" : named.model;
  Duration pause = kFirstPause;
  for (;;) {
    const TimePoint begun = loop_.now();
    const auto cached = download_->Cached(ref);
    // With a copy at hand the hub is not waited for longer than the start can.
    const Duration patience = cached ? options_.patience * 9 / 10 : kMostPerDownload;
    auto downloading = download_->Run(ref, begun + patience);
    auto folder = co_await downloading;
    const bool refused = !folder && folder.error().refused;
    std::string problem = folder ? "" : folder.error().what;
    if (!folder && cached) {
      log_.Warn("The hub did not give the model's files; the copy in the cache is used",
                {{"model", model}, {"path", *cached}, {"cause", problem}});
      folder = *cached;
    }
    if (folder) {
      auto used = Use(named, *folder, std::chrono::steady_clock::now() - begun);
      if (used) {
        Settle(*attempt, std::nullopt);
        co_return;
      }
      problem = used.error().what;
    }
    if ((refused || folder) && IsAwaited(*attempt)) {
      Settle(*attempt, Error{Blame::kCaller, problem});
      co_return;
    }
    log_.Warn(
        "Model files were not downloaded; engines are asked for tokens, and it is tried again",
        {{"model", model}, {"cause", problem}, {"pause_seconds", Seconds(pause)}});
    Settle(*attempt, std::nullopt);
    co_await loop_.Sleep(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

bool ModelFinder::IsAwaited(const Attempt& attempt) {
  const std::lock_guard lock(mutex_);
  return attempt.awaited && !attempt.over;
}

void ModelFinder::Settle(Attempt& attempt, std::optional<Error> error) {
  const std::lock_guard lock(mutex_);
  if (attempt.over) return;
  attempt.over = true;
  attempt.error = std::move(error);
  attempted_.notify_all();
}

Result<void> ModelFinder::Use(ModelLibrary::Named named, const std::string& folder, Duration took) {
  const std::string from = std::exchange(named.paths.model, folder);
  TRY_VOID(library_.Add(named, FilesOrigin::kDownloaded, from));
  const auto shelf = library_.Current();
  LogFiles(log_, named.model, *shelf->Find(named.model), took);
  return {};
}

void ModelFinder::Start() {
  if (!options_.search || named_.contains("") || library_.Current()->Find("") != nullptr) return;
  loop_.Post([this] { Spawn(Watch()); });
  Run();
}

Task<void> ModelFinder::Watch() {
  std::optional<uint64_t> seen;
  bool later = false;
  for (;;) {
    const uint64_t version = fleet_.version();
    if (later || seen != version) {
      seen = version;
      later = Look(*fleet_.Current());
    }
    co_await loop_.Sleep(kLookEvery);
  }
}

bool ModelFinder::Look(const FleetSnapshot& fleet) {
  const auto sought = Sought(fleet);
  std::erase_if(tried_, [&](const auto& entry) { return !sought.contains(entry.first); });
  bool later = false;
  for (const auto& [model, workers] : sought) {
    if (named_.contains(model)) continue;
    Tried& tried = tried_[model];
    if (tried.settled || tried.workers == workers) continue;
    const TimePoint now = std::chrono::steady_clock::now();
    if (tried.when != TimePoint{} && now - tried.when < kLeastPause) {
      later = true;
      continue;
    }
    tried.when = now;
    tried.workers = workers;
    LookFor(model, fleet, tried);
  }
  return later;
}

void ModelFinder::LookFor(const std::string& model, const FleetSnapshot& fleet, Tried& tried) {
  if (const KnownFiles* const known = library_.Current()->Find(model); known && known->model) {
    tried.settled = true;
    return;
  }
  const TimePoint begun = std::chrono::steady_clock::now();
  std::optional<KnownFiles> best;
  for (const ModelSearch::Place& place : search_.Find(NamesOf(model, fleet))) {
    KnownFiles files{.model = nullptr,
                     .origin = FilesOrigin::kFound,
                     .path = place.folder,
                     .found_by = place.found_by};
    if (auto loaded = Load(place.folder)) {
      files.model = *std::move(loaded);
      files.problem = files.model->template_problem();
    } else {
      files.problem = std::move(loaded).error().what;
    }
    const bool usable = files.model != nullptr;
    if (usable || !best) best = std::move(files);
    if (usable) break;
  }
  if (!best) {
    log_.Debug("No files of this model were found", {{"model", model}});
    return;
  }
  if (!library_.Put(model, *best)) return;
  tried.settled = best->model != nullptr;
  if (!tried.settled && std::exchange(tried.problem, best->problem) == best->problem) return;
  LogFiles(log_, model, *best, std::chrono::steady_clock::now() - begun);
}

Result<std::shared_ptr<const LanguageModel>> ModelFinder::Load(const std::string& folder) {
  if (const auto known = folders_.find(folder); known != folders_.end()) return known->second;
  if (folders_.size() >= kMostFolders) {
    return Fail(Blame::kOverload,
                "files of {} models have been found and loaded, which is the limit; name those of "
                "this model with --model-path",
                kMostFolders);
  }
  TRY(auto model, search_.Load(folder));
  folders_[folder] = model;
  return model;
}

}  // namespace fathom
