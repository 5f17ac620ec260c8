// What must be known of a worker before it gets requests, beside its block size?
//
// The prober begins the check when a worker joins, comes back, or may be another process, and holds
// the worker until the check is done, but not longer than kHeldAtMost.
//
// Threads  On the control loop.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "router/fleet/worker.h"

namespace fathom {

class AdmissionCheck {
 public:
  static constexpr Duration kHeldAtMost = std::chrono::milliseconds(1500);

  virtual ~AdmissionCheck() = default;
  // Whether there is anything to check. Its models are known, its engine may not be.
  virtual bool Concerns(const Worker& worker) const = 0;
  // Its engine is known if it can be. Calls `done` once, now or later.
  virtual void Begin(const std::shared_ptr<Worker>& worker, std::function<void()> done) = 0;
  // At every health check that the worker passes. May repeat the check, without holding the worker.
  virtual void Repeat(const std::shared_ptr<Worker>& worker) = 0;
  virtual void Forget(WorkerId id) = 0;
};

}  // namespace fathom
