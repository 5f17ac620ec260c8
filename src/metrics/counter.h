// How often did something happen (Counter), and how many are there now (Gauge)?
//
// Threads  Any, without locks. All atomics here are relaxed and pair with nothing: a value orders
//          no other memory, and a reader may see it a moment late.
// Memory   Fixed size; no call allocates. Neither copied nor moved: callers keep references.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "metrics/stripe.h"

namespace fathom {

// Only rises, and wraps at 2^64.
class Counter {
 public:
  Counter() = default;
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void Add(uint64_t n = 1) {
    cells_[StripeOfThisThread()].value.fetch_add(n, std::memory_order_relaxed);
  }

  // Includes at least everything that happened before the call, as seen from the calling thread.
  uint64_t Value() const {
    uint64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(kCacheLine) Cell {
    std::atomic<uint64_t> value{0};
  };

  std::array<Cell, kStripes> cells_;
};

// One cell, not stripes: Set replaces the whole value, which is not possible with one store on a
// sum of cells. A value that is counted up and down (requests in flight) changes twice per request,
// not per token.
class alignas(kCacheLine) Gauge {
 public:
  Gauge() = default;
  Gauge(const Gauge&) = delete;
  Gauge& operator=(const Gauge&) = delete;

  void Add(int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  void Set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  int64_t Value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

}  // namespace fathom
