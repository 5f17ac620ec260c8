// Adds workers to the fleet and removes them.
//
// Threads  All functions from any thread. Probes run on the control loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "io/http/client_connection.h"
#include "router/discovery/authority_shelf.h"
#include "router/discovery/load_watch.h"
#include "router/discovery/prober.h"
#include "router/fleet/block_sizes.h"
#include "router/fleet/fleet.h"

namespace fathom {

// A worker as an operator describes it.
struct WorkerRequest {
  // kOutside: admin calls, and everything else that is not the operator's own flags and files.
  enum class From : uint8_t { kOutside, kOperator };

  std::string url;
  std::optional<std::string> kv_events;
  std::optional<std::string> kv_events_replay;
  std::optional<std::string> kv_events_topic;
  std::string api_key_env;
  std::string ca_file;
  std::string host_name;  // for Host and certificates, if the URL has an address
  std::string role;       // prefill, decode, both
  std::map<std::string, std::string> labels;
  From from = From::kOutside;

  friend bool operator==(const WorkerRequest&, const WorkerRequest&) = default;
};

// The same after validation, with everything that is needed to join.
struct WorkerPlan {
  WorkerSpec spec;
  Endpoint endpoint;
};

class Directory {
 public:
  using ReadEnvironment = std::function<std::optional<std::string>(const std::string&)>;

  // Without a LoadWatch, engines are not asked for their load. Without BlockSizes, block sizes are
  // not checked. `outside_keys` are the variables that api_key_env may name in requests from
  // outside: any other would send a secret of the router to an address that the caller chooses.
  Directory(Fleet& fleet, Prober& prober, ReadEnvironment environment, Log& log,
            LoadWatch* load_watch = nullptr, BlockSizes* sizes = nullptr,
            std::vector<std::string> outside_keys = {})
      : fleet_(fleet),
        prober_(prober),
        load_watch_(load_watch),
        sizes_(sizes),
        environment_(std::move(environment)),
        outside_keys_(std::move(outside_keys)),
        log_(log) {}

  // Validates the whole description. Reads the CA file, and the key from the environment.
  Result<WorkerPlan> Plan(const WorkerRequest& request) const;

  // Fails if the worker is already in the fleet or the fleet is full.
  Result<std::shared_ptr<Worker>> Join(WorkerPlan plan);
  Result<std::shared_ptr<Worker>> Join(const WorkerRequest& request);
  bool Leave(WorkerId id, std::string_view cause = "removed by an operator");

  void Describe(WorkerId id, WorkerOrigin origin) { fleet_.SetOrigin(id, std::move(origin)); }

  // How to reach a worker; null once it has left.
  std::shared_ptr<const Endpoint> Find(WorkerId id) const;

 private:
  Result<std::string> KeyOf(const WorkerRequest& request) const;

  Fleet& fleet_;
  Prober& prober_;
  LoadWatch* const load_watch_;
  BlockSizes* const sizes_;
  const ReadEnvironment environment_;
  const std::vector<std::string> outside_keys_;
  Log& log_;
  mutable std::mutex mutex_;  // held for a whole join or leave
  std::unordered_map<WorkerId, std::shared_ptr<const Endpoint>> endpoints_;  // guarded by mutex_
  mutable AuthorityShelf authorities_;
};

}  // namespace fathom
