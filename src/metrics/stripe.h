// Which of several cells does this thread write to?
//
// A number that many threads raise is spread over kStripes cells, each in its own cache lines, so
// that cores do not contend for one line. Reading sums the cells: slow and rare.
//
// Threads  Each thread gets its stripe at first use, round-robin, and keeps it. Two threads may
//          share one, so cells are still atomics.
#pragma once

#include <atomic>
#include <cstddef>

namespace fathom {

constexpr size_t kStripes = 8;
constexpr size_t kCacheLine = 64;  // x86-64 and most arm64; a wrong value only costs speed

inline size_t StripeOfThisThread() {
  static constinit std::atomic<size_t> next{0};  // pairs with nothing: only the number matters
  thread_local const size_t stripe = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
  return stripe;
}

}  // namespace fathom
