// How much memory does the index hold, and may it take more?
//
// Every array of the index is added here when it is allocated and subtracted when it is freed, so
// the number is exact. A retired array counts until it is freed.
//
// Threads  Any.
#pragma once

#include <atomic>
#include <cstddef>

namespace fathom {

class MemoryMeter {
 public:
  explicit MemoryMeter(size_t limit) : limit_(limit) {}

  // False, without a change, if the sum would exceed the limit.
  bool TryAdd(size_t bytes) {
    if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_) return true;
    Subtract(bytes);
    return false;
  }
  // Ignores the limit: for operations that reduce memory use in the end.
  void Add(size_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void Subtract(size_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  size_t limit() const { return limit_; }

 private:
  const size_t limit_;
  std::atomic<size_t> bytes_{0};  // a plain count that orders nothing else
};

}  // namespace fathom
