// Is a worker's part of the index still being filled by its first replays?
//
// When a worker joins, its sources of events are looked for, and each source replays what it has
// published before. Until that is done, lookups find less than the worker holds. Requests may wait
// for it, but only as long as it makes progress: a publisher that cannot be reached, or does not
// answer, holds up nothing. Later replays, which repair gaps, do not count.
//
// Threads  Awaited() from any. The rest is for the event intake.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "router/fleet/fleet_pulse.h"

namespace fathom {

class CatchUp {
 public:
  explicit CatchUp(std::shared_ptr<FleetPulse> pulse = nullptr,
                   TimePoint now = std::chrono::steady_clock::now())
      : pulse_(std::move(pulse)) {
    Progress(now);
  }

  // The worker's sources were found, or it has none. Has an effect once.
  void Searched() {
    if (std::exchange(searching_, false)) End();
  }

  // Something that is awaited, from its construction to its destruction.
  class Share {
   public:
    Share(CatchUp& whole, TimePoint now) : whole_(whole) {
      ++whole_.awaited_;
      whole_.Progress(now);
    }
    ~Share() { whole_.End(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    void Progress(TimePoint now) { whole_.Progress(now); }

   private:
    CatchUp& whole_;
  };

  // Whether something is awaited that has made progress within `patience`.
  bool Awaited(TimePoint now, Duration patience) const {
    return Within(progress_.load(std::memory_order_relaxed), now, patience);
  }
  // Whether that may be true of any worker of the fleet. Costs one load.
  static bool AwaitedInFleet(const FleetPulse& pulse, TimePoint now, Duration patience) {
    return Within(pulse.catch_up.load(std::memory_order_relaxed), now, patience);
  }

 private:
  static bool Within(int64_t progress, TimePoint now, Duration patience) {
    return progress != 0 && now - TimePoint(Duration(progress)) < patience;
  }
  void Progress(TimePoint now) {
    const int64_t at = now.time_since_epoch().count();
    progress_.store(at, std::memory_order_relaxed);
    if (pulse_) pulse_->catch_up.store(at, std::memory_order_relaxed);
  }
  void End() {
    if (--awaited_ == 0) progress_.store(0, std::memory_order_relaxed);
  }

  const std::shared_ptr<FleetPulse> pulse_;
  bool searching_ = true;
  uint32_t awaited_ = 1;              // the search, and replays
  std::atomic<int64_t> progress_{0};  // nanoseconds of the steady clock; 0: nothing is awaited
};

}  // namespace fathom
