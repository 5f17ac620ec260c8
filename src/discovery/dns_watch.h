// Which workers has this name now? One at each of its addresses: those that are new join, those
// that have vanished leave.
//
// A worker entered as dns+http://name:port is looked up again and again. Each address is a worker
// of its own, known by its address (URL, id) and called by the name (Host header, certificate).
// What an operator takes out stays out for as long as the name has its address, or until the name
// is entered again.
//
// A plain http://name with several addresses is one worker that may be any of them: requests work,
// but nobody can know what is in which cache. That is said once.
//
// Threads    Everything from any. Names are looked up on the control loop.
// Memory     At most kMaxNames names of kMaxAddresses each; the fleet's own bound is for all.
// Staleness  An interval. A lookup that fails or finds nothing changes nothing.
#pragma once

#include <atomic>
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
#include "discovery/directory.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/task.h"

namespace fathom {

struct DnsWatchOptions {
  Duration interval = std::chrono::seconds(5);         // between two lookups of a name
  Duration plain_interval = std::chrono::seconds(60);  // of a name that is one worker
};

class DnsWatch {
 public:
  static constexpr size_t kMaxNames = 1024;
  static constexpr size_t kMaxAddresses = 1024;

  // Asks anew each time.
  using Resolve =
      std::function<Task<Result<std::vector<Address>>>(std::string host, uint16_t port)>;

  // What a name is at the moment.
  struct NameState {
    WorkerId id;      // of the name: it can be taken out as a worker can
    std::string url;  // dns+http://name:port/base
    std::vector<WorkerId> workers;
    std::vector<WorkerId> taken_out;
    std::string problem;  // why the last lookup has not answered
  };

  DnsWatch(Loop& control, Directory& directory, Resolve resolve, const DnsWatchOptions& options,
           Log& log)
      : loop_(control),
        directory_(directory),
        resolve_(std::move(resolve)),
        options_(options),
        log_(log) {}

  // Whether a worker's URL means the addresses of a name.
  static bool IsName(std::string_view url);

  // An entry of either kind.
  Result<void> Add(const WorkerRequest& request);
  // Looks the name up from now on. One that is watched already gets back what was taken out of it,
  // and is an error if it comes with other keys.
  Result<NameState> Watch(const WorkerRequest& request);
  // A worker at a URL of its own.
  Result<std::shared_ptr<Worker>> Join(const WorkerRequest& request);
  // Takes out a worker, or a name with all of its workers.
  bool Leave(WorkerId id);

  std::vector<NameState> Names() const;
  // How many names have not been looked up once yet. Once it is 0, the workers are in the fleet.
  size_t pending() const { return pending_.load(std::memory_order_acquire); }

 private:
  struct Name;
  using Addresses = Result<std::vector<Address>>;

  Task<void> WatchForever(std::shared_ptr<Name> name);
  Task<void> WatchPlain(WorkerId id, std::shared_ptr<const Endpoint> endpoint);
  // False once nobody wants to know any more.
  bool Apply(Name& name, const Addresses& found);
  // All below with mutex_ held.
  void Update(Name& name, const std::vector<Address>& found);
  void JoinAt(Name& name, WorkerId id, const std::string& address);
  void NoteProblem(Name& name, const std::string& problem);
  static NameState StateOf(const Name& name);

  Loop& loop_;
  Directory& directory_;
  const Resolve resolve_;
  const DnsWatchOptions options_;
  Log& log_;
  std::atomic<size_t> pending_{0};  // lowered (release) after the workers joined; see pending()
  mutable std::mutex mutex_;        // taken before the directory's own
  std::map<WorkerId, std::shared_ptr<Name>> names_;  // guarded by mutex_
  size_t watches_ = 0;        // guarded by mutex_: of names, also those that end with their sleep
  size_t plain_watches_ = 0;  // on the control loop only
};

}  // namespace fathom
