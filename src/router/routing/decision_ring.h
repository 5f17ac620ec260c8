// Which decisions were made recently, and why?
//
// Threads  Any. Each place of the ring has a lock of its own, so a request waits only if a page is
//          just copying the one decision that the request replaces or completes.
// Memory   `capacity` decisions, whose vectors are reused.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "router/routing/decision.h"

namespace fathom {

class DecisionRing {
 public:
  explicit DecisionRing(size_t capacity) : places_(capacity) {}

  // Assigns a number to the decision and keeps a copy.
  void Keep(Decision& decision);
  // Records the outcome of a decision, if it is still in the ring.
  void Complete(uint64_t number, std::optional<uint32_t> found, const Waste& waste);
  // The newest first, at most `most`.
  std::vector<Decision> Latest(size_t most) const;
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Place {
    mutable std::mutex mutex;
    Decision decision;  // guarded by mutex; number 0: none yet
  };

  std::vector<Place> places_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace fathom
