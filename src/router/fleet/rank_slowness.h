// How many times slower than the fleet is this rank?
//
// Learned from first tokens: the time each took, beside the time that the fleet's speed predicted
// at that moment. So it changes only when the rank itself answers, and not because others have
// become faster.
//
// Fading   Evidence has a half-life: a rank that gets no requests, because it was slow, counts as
//          any other after some minutes, is tried again, and is found out again within a few
//          requests if it still is slow.
// Process  It belongs to the engine's process: a new one starts without a past, and first tokens of
//          requests that were sent to the old one are not counted.
// Threads  Any. Reading takes no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace fathom {

class RankSlowness {
 public:
  static constexpr Duration kHalfLife = std::chrono::seconds(20);
  static constexpr double kMost = 16;

  struct FirstToken {
    double work = 0;    // units of PrefillWork()
    double ratio = 0;   // time that it took, to time that was expected
    uint64_t life = 0;  // of the engine, when the request was sent
  };
  // `life` is another number for each process of the engine.
  void Observe(const FirstToken& token, uint64_t life, TimePoint now);

  // Whether At() can be more than 1.
  bool notable() const { return notable_.load(std::memory_order_relaxed); }
  // At least 1; 1 while the difference may be noise.
  double At(TimePoint now, uint64_t life) const;

 private:
  void Publish();

  std::mutex mutex_;
  double work_ = 0;         // guarded by mutex_, as everything up to last_; decaying sum
  double took_ = 0;         // the same, each times its ratio
  double seen_ = 0;         // number of observations; fades with each of them, but not with time
  double recent_work_ = 0;  // their work, fading the same
  uint64_t life_ = 0;       // of the engine that they are about
  TimePoint last_{};
  // Copies for readers, which order nothing else.
  std::atomic<bool> notable_{false};  // without fading
  std::atomic<double> shown_work_{0};
  std::atomic<double> shown_took_{0};
  std::atomic<double> shown_assumed_{0};
  std::atomic<uint64_t> shown_life_{0};
  std::atomic<int64_t> shown_last_{0};
};

}  // namespace fathom
