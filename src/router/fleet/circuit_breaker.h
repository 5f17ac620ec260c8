// May a request be sent to this worker, given its recent failures?
//
// Closed while requests succeed. `threshold` failures in a row open it: nothing is sent for
// `open_for`. Then one trial request at a time is allowed; its success closes the breaker, its
// failure opens it again for twice as long (up to kMaxOpen). Requests that were sent before it
// opened and fail afterwards change nothing.
//
// Threads  Any. Races between threads can allow a second trial, never block one forever. All
//          atomics are relaxed and pair with nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "router/fleet/fleet_pulse.h"

namespace fathom {

class CircuitBreaker {
 public:
  static constexpr Duration kMaxOpen = std::chrono::seconds(60);

  // `pulse`, which may be null, is raised whenever it opens or closes.
  CircuitBreaker(uint32_t threshold, Duration open_for, std::shared_ptr<FleetPulse> pulse = nullptr)
      : threshold_(threshold), open_for_(open_for), pulse_(std::move(pulse)) {}

  // May a request be sent now?
  bool Allows(TimePoint now) const;
  // Called when a request is sent. While open, that request is the trial.
  void OnSend(TimePoint now);
  void OnSuccess();
  void OnFailure(TimePoint now);
  // Opens at once, regardless of the count: the worker announced that it is shutting down.
  void Trip(TimePoint now);

  bool open() const { return failures_.load(std::memory_order_relaxed) >= threshold_; }

 private:
  void Show(bool open);

  const uint32_t threshold_;
  const Duration open_for_;
  const std::shared_ptr<FleetPulse> pulse_;
  std::atomic<uint32_t> failures_{0};  // in a row
  std::atomic<int64_t> retry_at_{0};   // nanoseconds since the clock's epoch; meaningful while open
  std::atomic<bool> trial_{false};     // while open: a trial is in flight
  std::atomic<bool> shown_{false};     // as open, by the pulse
};

}  // namespace fathom
