// The decisions of the last moments, for whoever asks why.
//
// Threads  Any; a short lock.
// Memory   `capacity` decisions, whose vectors are used again and again.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "routing/decision.h"

namespace fathom {

class DecisionRing {
 public:
  explicit DecisionRing(size_t capacity) : ring_(capacity) {}

  // Numbers it and keeps a copy.
  void Keep(Decision& decision);
  // What became of a decision, if it is still here.
  void Complete(uint64_t number, std::optional<uint32_t> found, const Waste& waste);
  // The newest first, at most so many.
  std::vector<Decision> Latest(size_t most) const;
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  std::vector<Decision> ring_;      // guarded by mutex_
  std::atomic<uint64_t> count_{0};  // changed with mutex_ held
};

}  // namespace fathom
