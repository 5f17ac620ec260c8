// How long does a unit of prefill work last on these engines?
//
// Learned from every first token: how much work lay before it when it was sent, and how long it
// took. Old observations fade, so that a fleet that is replaced is known after some hundred
// requests. Before the first one the speed of the measured tables is assumed.
//
// Threads  Any.
#pragma once

#include <atomic>
#include <mutex>

#include "base/clock.h"
#include "fleet/prefill_work.h"

namespace fathom {

class EngineSpeed {
 public:
  // `work` in units of PrefillWork(): what was waiting, and its own.
  void Observe(double work, Duration took);

  // Nanoseconds that a unit lasts.
  double unit() const { return unit_.load(std::memory_order_relaxed); }
  // How many times slower than `fleet` this one is; 1 as long as the difference may be chance.
  double SlownessBeside(const EngineSpeed& fleet) const;

 private:
  std::mutex mutex_;
  double work_ = 0;  // guarded by mutex_; fading sums
  double took_ = 0;  // guarded by mutex_
  double seen_ = 0;  // guarded by mutex_; observations that have not faded
  // Copies for readers, which order nothing else.
  std::atomic<double> unit_{static_cast<double>(Duration(kUsualUnit).count())};
  std::atomic<double> weight_{0};
};

}  // namespace fathom
