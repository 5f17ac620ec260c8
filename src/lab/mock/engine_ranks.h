// The data-parallel ranks of one simulated engine: each has its own scheduler and its own cache.
//
// Threads  One loop runs all of them; Statistics() from any thread.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "lab/mock/engine_driver.h"
#include "lab/mock/event_feed.h"
#include "lab/mock/mock_options.h"
#include "lab/mock/timing_profile.h"

namespace fathom {

class EngineRanks {
 public:
  // An error if there is no such profile, a cache of that shape, or a port for its events.
  static Result<std::unique_ptr<EngineRanks>> Create(Loop& loop, const MockOptions& options);

  size_t size() const { return drivers_.size(); }
  EngineDriver& at(size_t rank) { return *drivers_[rank]; }
  const EngineDriver& at(size_t rank) const { return *drivers_[rank]; }
  // The rank with the fewest sequences, the first of several.
  size_t LeastLoaded() const;

  // True if every rank could.
  bool ResetPrefixCache();
  void Freeze();
  // The faults of these, from now on.
  void Adopt(const MockOptions& options);

  // Where the events are told; null: nowhere.
  EventFeed* feed() const { return feed_.get(); }
  // On the loop, which must have another turn before it stops.
  void StopFeed() { feed_.reset(); }

  // Of all ranks together; the cache usage is their mean.
  EngineStatistics Statistics() const;

 private:
  EngineRanks() = default;
  void Hear(size_t rank, const std::vector<KvEvent>& events);

  std::unique_ptr<TimingProfile> profile_;
  std::function<void(size_t rank, const std::vector<KvEvent>&)> on_kv_events_;
  std::unique_ptr<EventFeed> feed_;
  std::vector<std::unique_ptr<EngineDriver>> drivers_;
};

}  // namespace fathom
