// How much memory may all requests together use for this? Counted before the memory is taken.
//
// Threads  Any. A share belongs to one thread at a time, and the budget must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace fathom {

class RequestMemory {
 public:
  explicit RequestMemory(uint64_t limit) : limit_(limit) {}

  bool TryTake(uint64_t bytes) {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_) return true;
    Return(bytes);
    return false;
  }
  void Return(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

  // What one request has taken; returned with it.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() { ShrinkTo(0); }

    // For a share that is empty. False: the budget does not have as much.
    bool TryTake(RequestMemory& budget, uint64_t bytes) {
      if (!budget.TryTake(bytes)) return false;
      budget_ = &budget;
      bytes_ = bytes;
      return true;
    }
    // The rest turned out not to be needed.
    void ShrinkTo(uint64_t bytes) {
      if (bytes >= bytes_) return;
      budget_->Return(bytes_ - bytes);
      bytes_ = bytes;
    }

   private:
    RequestMemory* budget_ = nullptr;
    uint64_t bytes_ = 0;
  };

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace fathom
