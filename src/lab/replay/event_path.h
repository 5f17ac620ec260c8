// How do an engine's KV events get to the index? After a delay that is the same for all of them,
// and with whatever goes wrong on the way.
//
// What the intake would count of them is counted here, and told to the rank's witnesses: each
// router has one.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "lab/mock/kv_event.h"
#include "router/fleet/rank_witness.h"
#include "router/index/cache_index.h"

namespace fathom {

struct EventFaults {
  Duration later{};             // than all others
  bool keeps_removals = false;  // they are not published
  bool other_tokens = false;    // than those that were computed
  bool silent = false;          // nothing is published
  uint64_t loses_each = 0;      // every so many batches one; 0: none
};

class EventPath {
 public:
  // The index and the seat outlive it.
  EventPath(CacheIndex& index, RankLabel rank, uint32_t block_size, Epochs::Seat& seat,
            Duration delay, const EventFaults& faults = {});

  // One more whom to tell what is heard of the rank. Outlives it.
  void TellTo(RankWitness& witness);

  // Takes what the engine published now.
  void Send(std::vector<KvEvent>& events, TimePoint now);
  // The engine is another process from now on; its first batch says so.
  void Restart() { restarted_ = true; }
  // Applies what has arrived.
  void Deliver(TimePoint now);
  // When the next of them arrives; kNever if none is on its way.
  TimePoint next() const { return batches_.empty() ? kNever : batches_.front().arrives; }

  // What was heard, all in all.
  struct Heard {
    uint64_t batches = 0;
    uint64_t stored = 0;  // blocks
    uint64_t held = 0;    // blocks, now
    uint64_t lost = 0;    // batches
    bool proven = false;  // blocks were stored since everything was forgotten
    PulseReading pulse;
  };
  const Heard& heard() const { return heard_; }

 private:
  struct Batch {
    TimePoint sent;
    TimePoint arrives;
    uint64_t number;  // counted since the engine began
    bool first;       // of its process
    std::vector<KvEvent> events;
  };

  void Distort(std::vector<KvEvent>& events) const;
  // Forgets everything if this is not the batch that was to come.
  void Follow(const Batch& batch);
  void Forget();
  void Apply(const KvEvent& event, TimePoint now);
  void Compare(RankWitness& witness, const BlocksStored& stored, TimePoint now) const;
  void Count();

  const std::unique_ptr<RankHoldings> holdings_;
  const Duration delay_;
  const EventFaults faults_;
  std::vector<RankWitness*> witnesses_;
  std::deque<Batch> batches_;  // in order of arrival
  uint64_t sent_ = 0;
  bool restarted_ = false;
  uint64_t expected_ = 0;  // number of the batch that is to come
  Heard heard_;
};

}  // namespace fathom
