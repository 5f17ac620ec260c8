// Which workers does this DNS name have now? One at each of its addresses: new ones join, vanished
// ones leave.
//
// A worker entered as dns+http://name:port is looked up periodically. Each address is a separate
// worker: its URL and id contain the address, its Host header and certificate check use the name. A
// worker that an operator removes stays out until its address leaves the name, or until the name is
// entered again.
//
// A plain http://name with several addresses is one worker that may be any of them: requests work,
// but cache contents cannot be assigned to an address. That is logged once.
//
// Threads    All functions from any thread. Names are looked up on the control loop.
// Memory     At most kMaxNames names of kMaxAddresses each; the fleet's limit applies to the sum.
// Staleness  One interval. A lookup that fails or returns no address changes nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "io/net/address.h"
#include "io/net/loop.h"
#include "io/net/name_lookup.h"
#include "io/net/net_error.h"
#include "io/net/task.h"
#include "router/discovery/directory.h"
#include "router/sources/muster.h"

namespace fathom {

struct DnsWatchOptions {
  Duration interval = std::chrono::seconds(5);         // between two lookups of a name
  Duration plain_interval = std::chrono::seconds(60);  // of a plain http://name
};

class DnsWatch {
 public:
  static constexpr size_t kMaxNames = 1024;
  static constexpr size_t kMaxAddresses = 1024;

  // Must not cache.
  using Resolve = std::function<Task<NetResult<NameAnswer>>(std::string host, uint16_t port)>;

  // The current state of a name.
  struct NameState {
    WorkerId id;      // of the name, which can be removed like a worker
    std::string url;  // dns+http://name:port/base
    std::vector<WorkerId> workers;
    std::vector<WorkerId> taken_out;
    std::string problem;  // why the last lookup failed
  };

  DnsWatch(Loop& control, Directory& directory, Muster& muster, Resolve resolve,
           const DnsWatchOptions& options, Log& log)
      : loop_(control),
        directory_(directory),
        muster_(muster),
        resolve_(std::move(resolve)),
        options_(options),
        log_(log) {}

  // Whether a worker's URL stands for all addresses of a name.
  static bool IsName(std::string_view url);

  // Looks the name up from now on. If it is already watched, workers that were removed from it may
  // join again; other settings than before are an error.
  Result<NameState> Watch(const WorkerRequest& request);
  // Looks whether a worker with its own URL has several addresses.
  void WatchPlain(WorkerId id);
  // Removes a name with all of its workers. False: there is no such name.
  bool Leave(WorkerId id);

  std::vector<NameState> Names() const;

 private:
  struct Name;
  using Addresses = NetResult<NameAnswer>;

  Task<void> WatchForever(std::shared_ptr<Name> name);
  Task<void> WatchPlain(WorkerId id, std::shared_ptr<const Endpoint> endpoint);
  // False once the name is no longer watched.
  bool Apply(Name& name, const Addresses& found);
  // All below with mutex_ held.
  void Update(Name& name, const std::vector<Address>& found);
  bool WouldChangeFamily(const Name& name, const NameAnswer& found) const;
  Result<void> JoinAt(Name& name, const std::string& address);
  void NoteProblem(Name& name, const std::string& problem);
  NameState StateOf(const Name& name) const;

  Loop& loop_;
  Directory& directory_;
  Muster& muster_;
  const Resolve resolve_;
  const DnsWatchOptions options_;
  Log& log_;
  mutable std::mutex mutex_;                         // taken before the muster's own
  std::map<WorkerId, std::shared_ptr<Name>> names_;  // guarded by mutex_
  size_t watches_ = 0;        // guarded by mutex_: of names, including those that end after their
                              // sleep
  size_t plain_watches_ = 0;  // on the control loop only
};

}  // namespace fathom
