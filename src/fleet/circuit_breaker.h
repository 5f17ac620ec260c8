// Is it worth sending a request to this worker, after what happened lately?
//
// Closed while requests succeed. `threshold` failures in a row open it: nothing is sent for a
// while. Then one request at a time may try; its success closes the breaker, its failure opens it
// again for twice as long (up to kMaxOpen). Requests that were sent before it opened, and fail
// afterwards, change nothing.
//
// Threads  Any. Races between threads can let a second trial through, never block one for ever.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace fathom {

class CircuitBreaker {
 public:
  static constexpr Duration kMaxOpen = std::chrono::seconds(60);

  CircuitBreaker(uint32_t threshold, Duration open_for)
      : threshold_(threshold), open_for_(open_for) {}

  // Could a request be sent now?
  bool Allows(TimePoint now) const;
  // Called when one is sent. While open, the caller becomes the trial.
  void OnSend(TimePoint now);
  void OnSuccess();
  void OnFailure(TimePoint now);
  // Opens at once, whatever the count: the worker said that it is leaving.
  void Trip(TimePoint now);

  bool open() const { return failures_.load(std::memory_order_relaxed) >= threshold_; }

 private:
  const uint32_t threshold_;
  const Duration open_for_;
  std::atomic<uint32_t> failures_{0};  // in a row
  std::atomic<int64_t> retry_at_{0};   // nanoseconds since the clock's epoch; meaningful while open
  std::atomic<bool> trial_{false};     // while open: one is out, and undecided
};

}  // namespace fathom
