// How do an engine's KV events get to the index? After a delay that is the same for all of them.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "index/cache_index.h"
#include "mock/kv_event.h"

namespace fathom {

class EventPath {
 public:
  // The index and the seat outlive it.
  EventPath(CacheIndex& index, RankLabel rank, uint32_t block_size, Epochs::Seat& seat,
            Duration delay)
      : holdings_(index.Open(rank, {.size = block_size}, seat)), delay_(delay) {}

  // Takes what the engine published now.
  void Send(std::vector<KvEvent>& events, TimePoint now);
  // Applies what has arrived.
  void Deliver(TimePoint now);
  // When the next of them arrives; kNever if none is on its way.
  TimePoint next() const { return batches_.empty() ? kNever : batches_.front().arrives; }

 private:
  struct Batch {
    TimePoint arrives;
    std::vector<KvEvent> events;
  };

  void Apply(const KvEvent& event, TimePoint now);

  const std::unique_ptr<RankHoldings> holdings_;
  const Duration delay_;
  std::deque<Batch> batches_;  // in order of arrival
};

}  // namespace fathom
