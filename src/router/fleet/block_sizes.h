// The block sizes of a running fleet: makes the agreement (router/fleet/block_size_agreement.h)
// thread-safe and applies its decisions.
//
// Admissions go to the Fleet, remarks to the log, trust to the ranks that are priced. Code that
// indexes blocks calls MayIndex() again whenever version() has changed.
//
// Threads  Any.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"
#include "metrics/exposition.h"
#include "router/fleet/block_size_agreement.h"
#include "router/fleet/block_size_words.h"
#include "router/fleet/fleet.h"

namespace fathom {

class BlockSizes {
 public:
  // Pass `watched` false if routing does not use caches: then sizes need not agree, but are still
  // recorded.
  BlockSizes(const BlockSizeRules& rules, bool watched, Fleet& fleet, Log& log, TimePoint now);

  void Join(const std::shared_ptr<Worker>& worker, TimePoint now);
  void Leave(WorkerId id, TimePoint now);
  // The worker serves none of the models that are followed: its size does not matter, until it is
  // taken up again. Both are ignored for a removed Worker.
  void SetAside(const Worker& worker, TimePoint now);
  void TakeUp(const Worker& worker, TimePoint now);
  void Serves(WorkerId id, std::vector<std::string> models, TimePoint now);
  void Answered(WorkerId id, TimePoint now);
  void Reported(WorkerId id, const EngineReport& report, TimePoint now);
  // What was read in passing, without an interview.
  void Mentioned(WorkerId id, const EngineReport& report, TimePoint now);
  void Failed(WorkerId id, TimePoint now);

  // Another process may be at the worker's address: a connection was refused or reset, its events
  // ended, its start time changed. The worker gets no requests until `interview` has led to
  // Reported().
  void Doubt(const Worker& worker, TimePoint now);
  // Called on any thread, with a lock held: it must return at once. Set before other threads run.
  void SetInterview(std::function<void(WorkerId)> interview) { interview_ = std::move(interview); }

  // From events. Ignored for a removed Worker, even if its URL has been added again.
  void Followed(const Worker& worker, uint32_t rank, TimePoint now);
  void Renumbered(const Worker& worker, uint32_t from, uint32_t to, TimePoint now);
  bool Proven(const Worker& worker, uint32_t rank, uint32_t size, TimePoint now);
  void Exceeded(const Worker& worker, uint32_t rank, uint32_t at_least, TimePoint now);
  void Reset(const Worker& worker, uint32_t rank, TimePoint now);
  bool MayIndex(const Worker& worker, uint32_t size) const;
  void CountMismatch(const Worker& worker, uint32_t size);
  // Raised (release) after each decision; earlier results of MayIndex() may then be outdated. Pairs
  // with the acquire load here.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // Call it periodically. While it returns true, the start is not over: call it again soon.
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
  Trust TrustOf(WorkerId id, uint32_t rank) const;
  BlockSizeAgreement::Known SizeOf(WorkerId id) const;
  void Collect(const FleetSnapshot& fleet, Exposition& out) const;

 private:
  // With mutex_ held.
  void CarryOut();
  bool Knows(const Worker& worker) const;
  void Score(WorkerId id, uint32_t rank);

  const BlockSizeRules rules_;
  const bool watched_;
  std::function<void(WorkerId)> interview_;
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
