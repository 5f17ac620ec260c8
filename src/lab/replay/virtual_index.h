// What do the routers know of the engines' caches, in virtual time?
//
// All routers follow all engines, and hear the same after the same delay; so that one index serves
// them all, as each of them would have it.
//
// Threads  One.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lab/replay/event_path.h"
#include "lab/replay/time_queue.h"
#include "lab/replay/virtual_engine.h"

namespace fathom {

struct VirtualIndexOptions {
  Duration delay{};                 // of events
  std::vector<EventFaults> faults;  // by engine; those that are not named have none
  bool remembers_lost = false;      // blocks that were evicted, for trust
  uint64_t seed = 1;
};

class VirtualIndex {
 public:
  VirtualIndex(const VirtualIndexOptions& options, std::span<VirtualEngine* const> engines);

  // An engine published these.
  void Hear(size_t engine, std::vector<KvEvent>& events, TimePoint now);
  void Deliver(TimePoint now);
  // When the next events arrive; kNever if none are on their way.
  TimePoint next() const { return arrivals_.next(); }

  // Another process of the same engine, or another engine, is there from now on.
  void Restart(size_t engine) { paths_[engine]->Restart(); }
  void Replace(size_t engine, const VirtualEngine& by);

  CacheIndex& index() { return index_; }
  EventPath& path(size_t engine) { return *paths_[engine]; }

 private:
  std::unique_ptr<EventPath> PathOf(size_t engine, const VirtualEngine& to);

  const VirtualIndexOptions options_;
  CacheIndex index_;
  Epochs::Seat seat_;  // the writer's
  std::vector<std::unique_ptr<EventPath>> paths_;
  TimeQueue arrivals_;  // of events, by engine
};

}  // namespace fathom
