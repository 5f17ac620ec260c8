// What changes in a fleet without a new snapshot?
//
// A worker's ranks, report and circuit breaker change while its membership stays. Code that keeps
// something that depends on them compares these numbers instead of looking at every worker.
//
// Threads  Any. A number is raised (release) after the change; pairs with the acquire load of its
//          readers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace fathom {

struct FleetPulse {
  std::atomic<uint64_t> layout{0};    // ranks, and what engines report about themselves
  std::atomic<uint64_t> breakers{0};  // a worker's circuit breaker has opened or closed
  // When a first replay last made progress, on any worker (nanoseconds of the steady clock; 0:
  // never). A hint: relaxed, pairs with nothing.
  std::atomic<int64_t> catch_up{0};

  static void Raise(const std::shared_ptr<FleetPulse>& pulse) {
    if (pulse) pulse->layout.fetch_add(1, std::memory_order_release);
  }
};

}  // namespace fathom
