// How long does a unit of prefill work last on these engines?
//
// Learned from every first token: the work queued before it when the request was sent, and the time
// it took. Old observations decay, so that after a fleet is replaced some hundred requests are
// enough to learn the new speed. Before the first observation the speed of the measured tables is
// assumed.
//
// Threads  Any.
#pragma once

#include <atomic>
#include <mutex>

#include "base/clock.h"
#include "router/fleet/prefill_work.h"

namespace fathom {

class EngineSpeed {
 public:
  // `work` in units of PrefillWork(): the queued work plus the request's own.
  void Observe(double work, Duration took);

  // Nanoseconds per unit.
  double unit() const { return unit_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  double work_ = 0;  // guarded by mutex_; decaying sum
  double took_ = 0;  // guarded by mutex_
  // A copy for readers, which orders nothing else.
  std::atomic<double> unit_{static_cast<double>(Duration(kUsualUnit).count())};
};

}  // namespace fathom
