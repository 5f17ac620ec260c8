// Who is in the group, and what does each have in flight, as this replica sees it?
//
// For /health, /metrics and the doctor: a copy that the replicas' loop makes a few times per
// second.
//
// Threads  ReplicaBoard: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "router/replicas/replica_group.h"

namespace fathom {

struct ReplicaView {
  struct Row {
    std::string id;
    bool self = false;
    TimePoint heard{};           // when it spoke last; of this replica: when the view was made
    uint64_t requests = 0;       // in flight, placed by it
    double prefill_tokens = 0;   // of these, waiting for their first byte
    ReplicaPresence presence{};  // what it says of itself
    bool hears_us = false;       // it says that it has heard this replica
    TimePoint heard_us{};        // when it last said so; before that: when it joined
    Duration round_trip{};       // there and back; 0: not known yet
  };

  std::string group;
  std::string carrier;  // "nats" or "zmq"
  bool up = false;      // the carrier's
  std::string problem;  // the carrier's, if it is not up
  // No other replica is heard, and messages came lately that cannot be believed: "another key".
  std::string_view refused;
  TimePoint since{};      // when it came up, or went down
  std::vector<Row> rows;  // this replica first, then by id
  bool informed = true;   // the index was taken over, as far as the others have it
  struct Snapshots {      // ranks
    uint64_t asked = 0;
    uint64_t taken = 0;
    uint64_t dropped = 0;  // they did not fit what the engine said then
    uint64_t without = 0;  // no other replica had one
    uint64_t failed = 0;   // times that a replica fell silent, or sent a damaged one
    uint64_t told = 0;
  } snapshots;
  uint64_t polls = 0;    // workers that this replica polls for all
  uint64_t follows = 0;  // workers that another one polls
  struct {               // answers to polls, with events
    uint64_t told = 0;
    uint64_t heard = 0;
    uint64_t dropped = 0;     // not told: too many waited
    uint64_t incomplete = 0;  // parts were not heard
  } answers;
  uint64_t conflicts = 0;
  ReplicaGroupCounts counts;
  Carrier::Status carried;

  // Replicas that live, this one included.
  size_t living() const { return rows.size(); }
};

class ReplicaBoard {
 public:
  void Publish(std::shared_ptr<const ReplicaView> view) {
    const std::lock_guard lock(mutex_);
    view_ = std::move(view);
  }
  // Null before the first view.
  std::shared_ptr<const ReplicaView> Current() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const ReplicaView> view_;  // guarded by mutex_
};

}  // namespace fathom
