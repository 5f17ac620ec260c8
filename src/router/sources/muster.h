// Which workers are wanted now, by whom, and with which settings?
//
// Sources make claims: what one of them says of one worker. Claims of several sources on one URL
// are one worker. Each setting is taken from the strongest claim that has it: the operator's own
// entries, then POST /workers, then the other sources in the order in which they were opened. A
// worker joins with its first claim and leaves with its last. It drains, or is not ready, if one of
// its claims says so.
//
// What changes without another connection (labels, role, readiness) changes in place. Other
// settings make the worker leave and join again: its cache is learnt anew.
//
// A worker that an operator takes out stays out, whoever claims it, until its last claim is gone or
// until it is entered again.
//
// Threads  All functions from any thread. Calls of one Source one after the other.
// Memory   At most kMaxClaims claims, each with kMaxLabelBytes of labels.
// Cost     A claim costs the same in a small and in a large fleet, except the fleet's own lists.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "router/discovery/directory.h"
#include "router/fleet/fleet.h"
#include "router/fleet/worker_origin.h"

namespace fathom {

// What a source says of a worker.
struct Claim {
  WorkerRequest entry;  // what is not set there may be set by another source
  SourceSays says = SourceSays::kServe;
  std::string because;  // why it is not kServe, for operators
  std::string place;    // "config.yaml:12": shown in place of the source's name

  friend bool operator==(const Claim&, const Claim&) = default;
};

class Muster {
 public:
  static constexpr size_t kMaxClaims = 4 * Fleet::kMaxWorkers;
  static constexpr size_t kMaxLabelBytes = 16 << 10;

  enum class Rank : uint8_t { kOperator, kAdmin, kFound };  // whose word counts more: first

  class Source;

  // What is known of a source that follows something.
  struct SourceState {
    std::string name;
    bool ok = false;                       // its last answer is no older than it should be
    bool asked = false;                    // it has answered, or failed to, at least once
    TimePoint since{};                     // of this state
    std::string error;                     // why it is not ok
    size_t workers = 0;                    // that it claims, and that were not taken out
    std::vector<WorkerId> taken_out = {};  // by operators
    size_t not_added = 0;                  // of `workers`: the fleet is full
    std::string unknown;                   // what it cannot see, though it works; empty: nothing
  };

  Muster(Directory& directory, Log& log) : directory_(directory), log_(log) {}
  Muster(const Muster&) = delete;
  Muster& operator=(const Muster&) = delete;

  // `name` is the source as the operator wrote it. The claims of a source end with it.
  std::unique_ptr<Source> Open(std::string name, Rank rank);

  // The process ends: the fleet stays as it is, though its sources end one after the other.
  void End();

  // By an operator. False: there is no such worker.
  bool TakeOut(WorkerId id);
  // It may join again, if somebody claims it.
  void PutBack(WorkerId id);
  bool IsTakenOut(WorkerId id) const;
  // Null: it is not in the fleet.
  std::shared_ptr<Worker> Find(WorkerId id) const;

  // Those of rank kFound, in the order in which they were opened.
  std::vector<SourceState> Sources() const;
  // Their number, without a lock: requests may ask.
  size_t followed() const { return followed_.load(std::memory_order_relaxed); }
  // How many of them have neither answered nor failed. Once it is 0, their workers have joined.
  size_t pending() const { return pending_.load(std::memory_order_acquire); }

 private:
  struct Record {
    SourceState state;
    Rank rank = Rank::kFound;
    uint64_t turn = 0;
    std::set<WorkerId> workers;
    bool said_full = false;  // logged: the fleet is full
  };
  struct Held {
    std::shared_ptr<Record> source;
    Claim claim;
  };
  struct Entry {
    std::vector<Held> claims;        // strongest first, never empty
    std::shared_ptr<Worker> worker;  // null: taken out, or the fleet is full
    bool taken_out = false;
  };
  using Entries = std::unordered_map<WorkerId, Entry>;

  // The claims on a worker with one more, or another one of this source.
  struct Proposal {
    WorkerId id;
    std::vector<Held> claims;
    bool first = false;    // the source did not claim it before
    bool changes = false;  // it is not what the source said before
  };
  static WorkerRequest Merge(const std::vector<Held>& claims);
  static WorkerOrigin OriginOf(const std::vector<Held>& claims, const WorkerRequest& merged);
  // All below with mutex_ held.
  Result<Proposal> Propose(const std::shared_ptr<Record>& source, Claim claim) const;
  Result<WorkerId> Put(const std::shared_ptr<Record>& source, Claim claim);
  bool Drop(Record& source, WorkerId id, std::string_view cause);
  // Makes the fleet what the entry says.
  Result<void> Apply(WorkerId id, Entry& entry, WorkerPlan plan, const WorkerRequest& merged);
  // False: the fleet is full.
  bool Apply(WorkerId id, Entry& entry);
  void Leave(WorkerId id, Entry& entry, std::string_view cause);
  // Workers that did not fit into the fleet, once there is room.
  void AdmitWaiting();
  void SayFull(Record& source, const Error& error);
  void Settle(Record& record);

  Directory& directory_;
  Log& log_;
  std::atomic<size_t> followed_{0};
  std::atomic<size_t> pending_{0};  // lowered (release) after the workers joined; see pending()
  mutable std::mutex mutex_;        // taken before the directory's own
  Entries entries_;                 // guarded by mutex_
  std::vector<std::shared_ptr<Record>> records_;  // guarded by mutex_
  std::set<WorkerId> waiting_;                    // guarded by mutex_: the fleet was full
  size_t claims_ = 0;                             // guarded by mutex_
  bool ended_ = false;                            // guarded by mutex_
  uint64_t turns_ = 0;                            // guarded by mutex_
};

// The voice of one source. Ends before the Muster does.
class Muster::Source {
 public:
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // New, or in place of what this source said of that worker before. On an error nothing changes.
  Result<WorkerId> Put(Claim claim);
  // Whether Put() would accept it now, except for want of room.
  Result<void> Check(Claim claim) const;
  // False: this source does not claim it.
  bool Drop(WorkerId id, std::string_view cause);

  // Whether what it knows is current. Each change is logged once.
  void Ok();
  void Stale(std::string error);
  // It can be read, but what it says is not valid, so that its workers stay as they are.
  void Refused(std::string error);
  // What it cannot see, though it works (a resource that it may not read); empty: nothing.
  void SetUnknown(std::string unknown);

  bool Claims(WorkerId id) const;
  std::vector<WorkerId> Workers() const;
  const std::string& name() const { return record_->state.name; }

 private:
  friend class Muster;
  Source(Muster& muster, std::shared_ptr<Record> record)
      : muster_(muster), record_(std::move(record)) {}

  Muster& muster_;
  const std::shared_ptr<Record> record_;
};

}  // namespace fathom
