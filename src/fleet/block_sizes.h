// The block sizes of a running fleet: the agreement (fleet/block_size_agreement.h) for many
// threads, with what it decides carried out.
//
// Admissions go to the Fleet, remarks to the log, trust to the ranks that are priced. Who indexes
// blocks asks MayIndex() again whenever version() has changed.
//
// Threads  Any.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"
#include "fleet/block_size_agreement.h"
#include "fleet/block_size_words.h"
#include "fleet/fleet.h"
#include "metrics/exposition.h"

namespace fathom {

class BlockSizes {
 public:
  // Where routing does not look at caches, nobody needs to agree: pass `watched` false. Sizes are
  // known all the same.
  BlockSizes(const BlockSizeRules& rules, bool watched, Fleet& fleet, Log& log, TimePoint now);

  void Join(const std::shared_ptr<Worker>& worker, TimePoint now);
  void Leave(WorkerId id, TimePoint now);
  void Serves(WorkerId id, std::vector<std::string> models, TimePoint now);
  void Answered(WorkerId id, TimePoint now);
  void Reported(WorkerId id, const EngineReport& report, TimePoint now);
  void Failed(WorkerId id, TimePoint now);

  // What events say. A worker that has left, though its URL may be there again, says nothing.
  void Followed(const Worker& worker, uint32_t rank, TimePoint now);
  void Renumbered(const Worker& worker, uint32_t from, uint32_t to, TimePoint now);
  bool Proven(const Worker& worker, uint32_t rank, uint32_t size, TimePoint now);
  void Exceeded(const Worker& worker, uint32_t rank, uint32_t at_least, TimePoint now);
  void Reset(const Worker& worker, uint32_t rank, TimePoint now);
  bool MayIndex(const Worker& worker, uint32_t size) const;
  void CountMismatch(const Worker& worker, uint32_t size);
  // Raised (release) after something was decided; what MayIndex() said before may be wrong now.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // Now and then. While it returns true, the start is not over: call it again soon.
  bool Tick(TimePoint now, bool more);
  bool watched() const { return watched_; }
  bool starting() const { return starting_.load(std::memory_order_acquire); }
  bool refused_to_start() const { return refused_.load(std::memory_order_acquire); }
  Duration wait() const { return rules_.wait; }
  uint32_t configured() const { return rules_.configured; }
  // Workers whose block size the start waits for.
  std::vector<std::string> Awaited() const;

  // For the admin pages.
  struct RankStanding {
    Trust trust;
    TrustWords words;
  };
  RankStanding StandingOf(WorkerId id, uint32_t rank) const;
  BlockSizeAgreement::Known SizeOf(WorkerId id) const;
  void Collect(const FleetSnapshot& fleet, Exposition& out) const;

 private:
  // With mutex_ held.
  void CarryOut();
  bool Knows(const Worker& worker) const;
  void Score(WorkerId id, uint32_t rank);

  const BlockSizeRules rules_;
  const bool watched_;
  Fleet& fleet_;
  Log& log_;
  mutable std::mutex mutex_;
  BlockSizeAgreement agreement_;                         // guarded by mutex_
  std::map<WorkerId, std::shared_ptr<Worker>> workers_;  // guarded by mutex_
  std::atomic<uint64_t> version_{0};
  std::atomic<bool> starting_{true};
  std::atomic<bool> refused_{false};
};

}  // namespace fathom
