// May this request be retried?
//
// Every request adds a fraction to the budget and every retry takes one from it. So the fleet gets
// at most that fraction of additional load, however many workers fail. A small reserve allows
// retries when there is little traffic.
//
// Threads  Any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace fathom {

class RetryBudget {
 public:
  static constexpr int64_t kUnit = 1000;
  static constexpr int64_t kReserve = 10 * kUnit;
  static constexpr int64_t kMax = 100 * kUnit;

  explicit RetryBudget(double ratio) : deposit_(static_cast<int64_t>(ratio * kUnit)) {}

  void OnRequest() {
    // A full budget, the usual state, is only read.
    if (balance_.load(std::memory_order_relaxed) >= kMax) return;
    balance_.fetch_add(deposit_, std::memory_order_relaxed);
  }

  bool TryWithdraw() {
    int64_t balance = balance_.load(std::memory_order_relaxed);
    while (balance >= kUnit) {
      if (balance_.compare_exchange_weak(balance, balance - kUnit, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

 private:
  const int64_t deposit_;
  std::atomic<int64_t> balance_{kReserve};
};

}  // namespace fathom
