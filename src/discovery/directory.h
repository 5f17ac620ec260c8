// Brings workers into the fleet and takes them out, from a list, a file, a name or an admin call.
//
// Threads  Everything from any. Probes run on the control loop.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/log.h"
#include "base/result.h"
#include "discovery/load_watch.h"
#include "discovery/prober.h"
#include "fleet/block_sizes.h"
#include "fleet/fleet.h"
#include "http/client_connection.h"

namespace fathom {

// A worker as an operator describes it.
struct WorkerRequest {
  std::string url;
  std::optional<std::string> kv_events;
  std::optional<std::string> kv_events_replay;
  std::optional<std::string> kv_events_topic;
  std::string api_key_env;
  std::string ca_file;

  friend bool operator==(const WorkerRequest&, const WorkerRequest&) = default;
};

// The same, checked, with all that it takes to join.
struct WorkerPlan {
  WorkerSpec spec;
  Endpoint endpoint;

  // The worker at one of the addresses that its host has: reached and known there, called by name.
  WorkerPlan At(const std::string& address) const;
};

class Directory {
 public:
  using ReadEnvironment = std::function<std::optional<std::string>(const std::string&)>;

  // Without a LoadWatch, engines are not asked for their load; without BlockSizes, nobody has to
  // agree on them.
  Directory(Fleet& fleet, Prober& prober, ReadEnvironment environment, Log& log,
            LoadWatch* load_watch = nullptr, BlockSizes* sizes = nullptr)
      : fleet_(fleet),
        prober_(prober),
        load_watch_(load_watch),
        sizes_(sizes),
        environment_(std::move(environment)),
        log_(log) {}

  // Checks everything that can be wrong with the description. Reads the authority's file, and the
  // key from the environment.
  Result<WorkerPlan> Plan(const WorkerRequest& request) const;

  // An error if it is there already or the fleet is full.
  Result<std::shared_ptr<Worker>> Join(WorkerPlan plan);
  Result<std::shared_ptr<Worker>> Join(const WorkerRequest& request);
  bool Leave(WorkerId id, std::string_view cause = "taken out by an operator");

  // How to reach a worker; null once it has left.
  std::shared_ptr<const Endpoint> Find(WorkerId id) const;

 private:
  Fleet& fleet_;
  Prober& prober_;
  LoadWatch* const load_watch_;
  BlockSizes* const sizes_;
  const ReadEnvironment environment_;
  Log& log_;
  mutable std::mutex mutex_;  // also makes joining and leaving one step each
  std::unordered_map<WorkerId, std::shared_ptr<const Endpoint>> endpoints_;  // guarded by mutex_
};

}  // namespace fathom
