// Which workers are in the fleet, which can be routed to, and which models does each serve?
//
// Changes go through Fleet. Readers use immutable FleetSnapshots only, each through its own
// FleetReader, which costs one atomic load when nothing has changed. A snapshot is made when it is
// asked for, however many changes there were since the last, and shares with that what has not
// changed.
//
// Threads  Fleet: any. FleetReader: one per thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "router/fleet/fleet_lists.h"
#include "router/fleet/fleet_pulse.h"
#include "router/fleet/model_slice.h"
#include "router/fleet/worker.h"
#include "router/fleet/worker_origin.h"

namespace fathom {

enum class WorkerState : uint8_t {
  kProbing,    // nothing known yet
  kReady,      // can be routed to
  kUnhealthy,  // fails its health checks
  kExcluded,   // is healthy, but not admitted
  kUnready,    // its source says that it is not ready, or not yet
  kDraining,   // its source says that it ends: requests in flight are completed
  kOutside,    // serves none of the models that this router follows (--models)
};

std::string_view Name(WorkerState state);
// Whether a worker in this state answers its health checks, routed to or not.
bool Answers(WorkerState state);

// A worker in a snapshot.
struct Member {
  std::shared_ptr<Worker> worker;
  WorkerState state = WorkerState::kProbing;
  std::string cause;                     // why it is unhealthy or excluded, for operators
  std::vector<std::string> models;       // sorted; as the worker reported them, of --models
  std::vector<std::string> model_cards;  // the JSON objects of its /v1/models, in the same order
  std::vector<std::string> adapters;     // sorted; the models that are LoRA adapters
  std::map<std::string, std::string> bases;  // adapter -> base model
  bool any_model = false;                    // it does not report its models: assume all
  bool reported = false;                     // it has reported its models at least once
  uint64_t lives = 0;   // times it became ready or excluded: each may be a new process
  uint64_t joined = 0;  // its turn among the members; each has its own
  // What the router's own checks say, whatever the source says: not kUnready, not kDraining.
  WorkerState checked = WorkerState::kProbing;
  bool held = false;  // it answers, and is not admitted yet: its block size has to be agreed on
  // Its events are followed. False with --models, until it reports that it serves one of them.
  bool followed = true;
  std::shared_ptr<const WorkerOrigin> origin = WorkerOrigin::Unknown();

  // An empty name is any model's.
  bool Serves(std::string_view model) const {
    return model.empty() || any_model || std::ranges::binary_search(models, model);
  }
};

// Whether a healthy worker may be routed to.
enum class Membership : uint8_t { kHeld, kAdmitted, kRefused };

class FleetSnapshot {
 public:
  explicit FleetSnapshot(std::vector<Member> members);

  // By the time of joining.
  auto members() const {
    return std::views::transform(
        members_, [](const std::shared_ptr<const Member>& m) -> const Member& { return *m; });
  }
  // Routable workers that serve the model; an empty name returns all routable workers.
  const std::vector<const Member*>& Serving(std::string_view model) const {
    return lists_.Of(model);
  }
  const Member* Find(WorkerId id) const;
  // Whether a worker serves the model, routable or not. Also true while that is unknown: a worker's
  // first probe is pending, or none has ever answered.
  bool KnowsModel(std::string_view model) const { return lists_.Knows(model); }
  // Whether a worker serves the name as a LoRA adapter of another model.
  bool IsAdapter(std::string_view model) const { return lists_.IsAdapter(model); }
  // The base model of an adapter; empty if the name is not an adapter.
  std::string_view BaseOf(std::string_view model) const { return lists_.BaseOf(model); }
  // The model that answers a request which names none, as those to /generate: a worker's first.
  std::string_view NameServed(std::string_view model) const;
  size_t routable() const { return lists_.routable().size(); }
  // The same number for the same routable workers in any order, and for others only by chance.
  uint64_t RoutableSet() const;
  // Whether the first probe of a worker that might serve the model is pending.
  bool MaySoonServe(std::string_view model) const;
  // What has changed since it was made, without a new snapshot.
  const FleetPulse& pulse() const { return *pulse_; }
  // No other snapshot of the process has it.
  uint64_t number() const { return number_; }

 private:
  friend class Fleet;
  using Members = std::vector<std::shared_ptr<const Member>>;
  // When each one joined, sorted by id. Unlike positions these stay when others leave.
  using Directory = std::vector<std::pair<WorkerId, uint64_t>>;

  FleetSnapshot(Members members, std::shared_ptr<const Directory> directory, FleetLists lists,
                std::shared_ptr<FleetPulse> pulse)
      : members_(std::move(members)),
        directory_(std::move(directory)),
        lists_(std::move(lists)),
        pulse_(std::move(pulse)) {}
  // The position among the members.
  static std::optional<size_t> Find(const Members& members, const Directory& directory,
                                    WorkerId id);
  static uint64_t NextNumber();

  const uint64_t number_ = NextNumber();
  Members members_;  // by the time of joining
  std::shared_ptr<const Directory> directory_;
  FleetLists lists_;
  std::shared_ptr<FleetPulse> pulse_;
};

class Fleet {
 public:
  static constexpr size_t kMaxWorkers = 4096;

  // A test may want a fleet that is full sooner. `slice` are the models that are followed.
  explicit Fleet(const BreakerOptions& breaker, size_t max_workers = kMaxWorkers,
                 ModelSlice slice = {});

  const ModelSlice& slice() const { return slice_; }

  // Fails if the worker is already in the fleet, or the fleet is full.
  Result<std::shared_ptr<Worker>> Add(WorkerSpec spec);
  bool Remove(WorkerId id);

  void SetHealthy(WorkerId id);
  void SetUnhealthy(WorkerId id, std::string cause);
  // Independent of health: a held worker is shown as probing, a refused one as excluded. The
  // default is admitted.
  void SetMembership(WorkerId id, Membership membership, std::string cause = "");
  // A worker that is held is shown as probing, whatever its health and its membership are. Until
  // Release(), which has no effect on others.
  void Hold(WorkerId id);
  void Release(WorkerId id);
  struct ModelReport {
    std::vector<std::string> models;
    std::vector<std::string> cards;
    bool any_model = false;
    std::vector<std::string> adapters = {};
    std::map<std::string, std::string> bases = {};
    // By Narrow():
    bool outside = false;                  // it serves none of the models that are followed
    std::vector<std::string> others = {};  // models that it serves and that are not followed
  };
  // Without the models that are not followed.
  ModelReport Narrow(ModelReport report) const;
  // Both make a new snapshot only if something has changed.
  void SetOrigin(WorkerId id, WorkerOrigin origin);
  // Of a report that was narrowed.
  void SetModels(WorkerId id, ModelReport report);

  std::shared_ptr<const FleetSnapshot> Current() const;
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  // Data of a member that is not in snapshots.
  struct Standing {
    bool healthy = false;
    Membership membership = Membership::kAdmitted;
    std::string refusal;
    std::string illness;
    std::string outside;  // why it is outside of the models that are followed; empty: it is not
    bool asked = false;   // a health check has completed, successfully or not
    bool held = false;    // by Hold()
  };
  static void Show(const Standing& standing, Member& member);

  // With mutex_ held.
  std::optional<size_t> Find(WorkerId id) const;
  // Changes one member, with what it is given.
  void Change(size_t position, const std::function<void(Member&)>& change);
  void Publish();

  const size_t max_workers_;
  const ModelSlice slice_;
  const BreakerOptions breaker_;
  const std::shared_ptr<FleetPulse> pulse_ = std::make_shared<FleetPulse>();
  const std::shared_ptr<LoadBoard> board_ = std::make_shared<LoadBoard>();
  mutable std::mutex mutex_;
  FleetSnapshot::Members members_;  // guarded by mutex_
  // Guarded by mutex_; replaced when a worker comes or goes.
  std::shared_ptr<const FleetSnapshot::Directory> directory_ =
      std::make_shared<FleetSnapshot::Directory>();
  FleetLists lists_;                                       // guarded by mutex_
  std::unordered_map<WorkerId, Standing> standings_;       // guarded by mutex_
  uint64_t joined_ = 0;                                    // guarded by mutex_
  mutable std::shared_ptr<const FleetSnapshot> snapshot_;  // guarded by mutex_; null: outdated
  std::atomic<uint64_t> version_{0};  // raised (release) after a change; pairs with version()
};

class FleetReader {
 public:
  explicit FleetReader(const Fleet& fleet) : fleet_(fleet) {}

  // The newest snapshot. Copy the pointer to keep it across a wait.
  const std::shared_ptr<const FleetSnapshot>& Get() {
    if (const uint64_t version = fleet_.version(); version != version_ || !snapshot_) {
      version_ = version;
      snapshot_ = fleet_.Current();
    }
    return snapshot_;
  }

 private:
  const Fleet& fleet_;
  uint64_t version_ = 0;
  std::shared_ptr<const FleetSnapshot> snapshot_;
};

}  // namespace fathom
