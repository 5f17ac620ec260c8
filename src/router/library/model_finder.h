// How does the router get the files of the models that its workers serve?
//
// Those that the operator names as models of a hub are downloaded: the start waits for them, at
// most `patience`; after that the router serves without them, and the download is tried again
// beside it. A copy in the cache is used if the hub cannot be reached in that time. Others are
// searched for on this machine when a worker with a new model is admitted, and once more when
// another worker of that model joins (model_search.h).
//
// Threads  One of its own, with a loop: it waits for the disk and for the hub. Fetch(), Start() and
//          Stop() from one thread.
// Memory   At most kMostModels models are looked for at a time, and at most kMostFolders folders
//          are ever loaded; those stay.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "io/net/loop.h"
#include "io/net/resolver.h"
#include "router/fleet/fleet.h"
#include "router/library/hub_download.h"
#include "router/library/model_search.h"
#include "text/model/model_library.h"

namespace fathom {

// One record: the model's files, where they come from, and what is wrong with them.
void LogFiles(Log& log, const std::string& model, const KnownFiles& files, Duration took);

class ModelFinder {
 public:
  static constexpr size_t kMostModels = 256;
  static constexpr size_t kMostFolders = 32;
  // Between two searches for the same model.
  static constexpr Duration kLeastPause = std::chrono::seconds(10);

  struct Options {
    HubEnvironment hub;
    std::vector<std::string> roots;
    bool search = true;  // false: only what the operator names is used
    Duration patience = std::chrono::seconds(20);
  };

  ModelFinder(Options options, ModelLibrary library, const Fleet& fleet, Resolver& resolver,
              Log& log);
  ~ModelFinder() { Stop(); }
  ModelFinder(const ModelFinder&) = delete;
  ModelFinder& operator=(const ModelFinder&) = delete;

  // The paths of all entries begin with "hf:". Fails if one is not valid, or if the hub refuses it
  // and the cache has no copy.
  Result<void> Fetch(const std::vector<ModelLibrary::Named>& named);
  // Begins to search, unless that is turned off.
  void Start();
  void Stop();

 private:
  // The first attempt of a download, which the start waits for.
  struct Attempt {
    bool over = false;
    bool awaited = true;  // by the start
    std::optional<Error> error;
  };
  struct Tried {
    uint64_t workers = 0;  // that had joined by then
    TimePoint when{};
    bool settled = false;
    std::string problem;
  };

  void Run();
  Task<void> Keep(ModelLibrary::Named named, HubRef ref, std::shared_ptr<Attempt> attempt);
  // Whether the start still waits for it: then it ends with the error.
  bool IsAwaited(const Attempt& attempt);
  void Settle(Attempt& attempt, std::optional<Error> error);
  Result<void> Use(ModelLibrary::Named named, const std::string& folder, Duration took);

  Task<void> Watch();
  // True: a model is to be looked for later.
  bool Look(const FleetSnapshot& fleet);
  void LookFor(const std::string& model, const FleetSnapshot& fleet, Tried& tried);
  Result<std::shared_ptr<const LanguageModel>> Load(const std::string& folder);

  const Options options_;
  ModelLibrary library_;
  const Fleet& fleet_;
  Resolver& resolver_;
  Log& log_;
  const ModelSearch search_;
  Loop loop_;
  std::optional<HubDownload> download_;
  std::set<std::string> named_;  // models whose files are being downloaded; set before Start()
  std::mutex mutex_;             // guards what Attempts contain
  std::condition_variable attempted_;
  // On the thread only.
  std::map<std::string, Tried> tried_;
  std::map<std::string, std::shared_ptr<const LanguageModel>> folders_;
  std::jthread thread_;
};

}  // namespace fathom
