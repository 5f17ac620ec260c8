// Do prompts come back to what their texts say that this rank has cached?
//
// Where no tokens are known, the router assumes that a rank still has the prompts that were sent
// there. Engines that report cached tokens show whether it has. The credit of the assumption is the
// share that came true of late, and whole from kCertain on, because preempted requests and partial
// blocks let a good rank report less. Below kDoubted it is none: the texts of this rank do not
// steer requests, until those that go there for other reasons find what was assumed again. An
// engine that reports nothing keeps its credit; then only time ends an assumption.
//
// A request that was preempted reports that nothing was cached, whatever it had found. So a report
// of nothing counts only if kNothing of them come in a row.
//
// Threads  Any; a short lock. credit() takes none.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace fathom {

class TextRecord {
 public:
  static constexpr unsigned kLeast = 4;       // answers before any doubt
  static constexpr unsigned kNothing = 4;     // reports of nothing in a row
  static constexpr double kMemory = 0.96875;  // weight of all earlier answers, at each new one
  static constexpr double kDoubted = 0.25;    // share that comes true
  static constexpr double kBelieved = 0.5;    // above this, a doubt ends
  static constexpr double kCertain = 2.0 / 3;

  // `assumed` and `found` are tokens of one prompt; requires assumed > 0. Returns whether the
  // report counts.
  bool Served(uint64_t assumed, uint64_t found);

  // From 0 to 1.
  double credit() const { return credit_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  unsigned seen_ = 0;     // guarded by mutex_, as the sums
  unsigned nothing_ = 0;  // reports of nothing in a row
  double assumed_ = 0;    // fading sum
  double found_ = 0;      // the same, at most what was assumed
  // A copy for readers, which orders nothing else.
  std::atomic<double> credit_{1};
};

}  // namespace fathom
