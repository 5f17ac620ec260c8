// Who is in the fleet, who can be routed to, and which model lives where.
//
// Changes are rare and go through Fleet; each makes a new immutable FleetSnapshot. Readers look at
// snapshots only, through a FleetReader of their own, which costs one atomic load when nothing has
// changed.
//
// Threads  Fleet: any. FleetReader: one each.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/worker.h"

namespace fathom {

enum class WorkerState : uint8_t {
  kProbing,    // nothing known yet
  kReady,      // can be routed to
  kUnhealthy,  // fails its health checks
  kExcluded,   // is well, but not admitted
};

std::string_view Name(WorkerState state);

// A worker as a snapshot sees it.
struct Member {
  std::shared_ptr<Worker> worker;
  WorkerState state = WorkerState::kProbing;
  std::string cause;                     // why it is unhealthy or excluded, for operators
  std::vector<std::string> models;       // sorted; what it serves, as it reported
  std::vector<std::string> model_cards;  // the JSON objects of its /v1/models, in the same order
  std::vector<std::string> adapters;     // sorted; those of the models that are LoRA adapters
  std::map<std::string, std::string> bases;  // of the adapters: the models that they change
  bool any_model = false;                    // it cannot say what it serves: assume everything
  bool reported = false;                     // it has said what it serves, now or earlier
  uint64_t lives = 0;                        // how often it became ready: each may be a new process
};

// Whether a worker that is well may be routed to.
enum class Membership : uint8_t { kHeld, kAdmitted, kRefused };

class FleetSnapshot {
 public:
  explicit FleetSnapshot(std::vector<Member> members);

  const std::vector<Member>& members() const { return members_; }
  // Routable workers that serve the model; an empty model asks for all of them.
  const std::vector<const Member*>& Serving(std::string_view model) const;
  const Member* Find(WorkerId id) const;
  // Whether some worker serves it, routable or not. True also while that is too early to say: a
  // worker is still being asked for the first time, or none has ever answered.
  bool KnowsModel(std::string_view model) const;
  // Whether some worker serves it as a LoRA adapter of another model.
  bool IsAdapter(std::string_view model) const { return adapters_.contains(model); }
  // The model that an adapter changes; empty where it is none.
  std::string_view BaseOf(std::string_view model) const;
  size_t routable() const { return routable_.size(); }
  // Whether somebody who might serve the model is being asked for the first time.
  bool MaySoonServe(std::string_view model) const;

 private:
  std::vector<Member> members_;
  std::vector<const Member*> routable_;
  std::vector<const Member*> any_model_;  // routable and able to serve whatever is asked
  bool may_know_ = false;                 // too early to say what nobody serves
  std::map<std::string, std::vector<const Member*>, std::less<>> by_model_;
  std::set<std::string, std::less<>> adapters_;
  std::map<std::string, std::string, std::less<>> bases_;
};

class Fleet {
 public:
  static constexpr size_t kMaxWorkers = 4096;

  explicit Fleet(const BreakerOptions& breaker);

  // The worker's id; an error if it is there already or the fleet is full.
  Result<std::shared_ptr<Worker>> Add(WorkerSpec spec);
  bool Remove(WorkerId id);

  void SetHealthy(WorkerId id);
  void SetUnhealthy(WorkerId id, std::string cause);
  // Beside health: who is held is probing, who is refused is excluded, whatever it says of itself.
  // Everybody is admitted unless somebody says otherwise.
  void SetMembership(WorkerId id, Membership membership, std::string cause = "");
  struct ModelReport {
    std::vector<std::string> models;
    std::vector<std::string> cards;
    bool any_model = false;
    std::vector<std::string> adapters = {};
    std::map<std::string, std::string> bases = {};
  };
  // Makes a new snapshot only if something has changed.
  void SetModels(WorkerId id, ModelReport report);

  std::shared_ptr<const FleetSnapshot> Current() const;
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  // What is known of a member beside what snapshots show.
  struct Standing {
    bool healthy = false;
    Membership membership = Membership::kAdmitted;
    std::string refusal;
    std::string illness;
    bool asked = false;  // it has answered a health check, well or not
  };
  static void Show(const Standing& standing, Member& member);

  // With mutex_ held.
  Member* Find(WorkerId id);
  void Publish();

  const BreakerOptions breaker_;
  mutable std::mutex mutex_;
  std::vector<Member> members_;                    // guarded by mutex_
  std::map<WorkerId, Standing> standings_;         // guarded by mutex_
  std::shared_ptr<const FleetSnapshot> snapshot_;  // guarded by mutex_
  std::atomic<uint64_t> version_{
      0};  // raised (release) after snapshot_ changed; pairs with version()
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
