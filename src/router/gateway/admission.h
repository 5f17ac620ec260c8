// How many requests may be in flight, and which ones wait for a place?
//
// Threads   Any. Entering and leaving are one atomic operation each while no request waits.
// Fairness  First come, first served, across loops.
// Bounds    At most `limit` inside and `max_waiting` outside; later requests get kFull.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>

#include "io/net/wakeable_wait.h"

namespace fathom {

enum class AdmissionVerdict : uint8_t { kAdmitted, kFull, kTimedOut, kCancelled };

class Admission {
 public:
  Admission(uint32_t limit, uint32_t max_waiting) : limit_(limit), max_waiting_(max_waiting) {}

  // Takes a place if one is free and no request waits for it.
  bool TryEnter();
  void Leave();

  // Waits for a place. Leave() must follow if, and only if, the verdict is kAdmitted.
  class Wait : private WakeableWait {
   public:
    Wait(Admission& admission, Loop& loop, TimePoint deadline)
        : WakeableWait(loop, deadline), admission_(admission) {}
    bool await_ready();
    using WakeableWait::await_suspend;
    AdmissionVerdict await_resume();
    // On the waiting request's loop.
    using WakeableWait::Cancel;

   private:
    friend class Admission;

    Admission& admission_;
    bool full_ = false;                 // it found no room in the queue
    bool queued_ = false;               // guarded by the admission's mutex
    std::list<Wait*>::iterator place_;  // valid while queued_
  };

  int64_t inside() const { return inside_.load(std::memory_order_relaxed); }
  int64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  bool TakePlace();
  void GrantWaiting();  // mutex_ held

  const int64_t limit_;
  const int64_t max_waiting_;
  // Each side changes its own atomic first, then reads the other (both sequentially consistent). So
  // either Leave() sees the waiter in waiting_, or the waiter sees the free place in inside_.
  std::atomic<int64_t> inside_{0};
  std::atomic<int64_t> waiting_{0};
  std::mutex mutex_;
  std::list<Wait*> queue_;  // guarded by mutex_
};

}  // namespace fathom
