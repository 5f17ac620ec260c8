// How many requests may be in flight, and who waits for a place?
//
// Threads   Any. Entering and leaving are one atomic each while nobody waits.
// Fairness  First come, first served, across loops.
// Bounds    At most `limit` inside and `max_waiting` outside; whoever comes later is told so.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <list>
#include <mutex>

#include "net/loop.h"

namespace fathom {

enum class AdmissionVerdict : uint8_t { kAdmitted, kFull, kTimedOut, kCancelled };

class Admission {
 public:
  Admission(uint32_t limit, uint32_t max_waiting) : limit_(limit), max_waiting_(max_waiting) {}

  // Takes a place if one is free and nobody waits for it.
  bool TryEnter();
  void Leave();

  // Waits for a place. Leave() must follow if, and only if, the verdict is kAdmitted.
  class Wait {
   public:
    Wait(Admission& admission, Loop& loop, TimePoint deadline)
        : admission_(admission), loop_(loop), deadline_(deadline), timer_(*this) {}
    bool await_ready() { return false; }
    bool await_suspend(std::coroutine_handle<> waiting);
    AdmissionVerdict await_resume() const { return verdict_; }
    // On the loop that waits.
    void Cancel() { GiveUp(AdmissionVerdict::kCancelled); }

   private:
    friend class Admission;

    struct Deadline : Timer {
      explicit Deadline(Wait& w) : Timer(&OnFire), wait(w) {}
      static void OnFire(Timer& timer) {
        static_cast<Deadline&>(timer).wait.GiveUp(AdmissionVerdict::kTimedOut);
      }
      Wait& wait;
    };

    void GiveUp(AdmissionVerdict verdict);
    void Resume(AdmissionVerdict verdict);

    Admission& admission_;
    Loop& loop_;
    const TimePoint deadline_;
    Deadline timer_;
    std::coroutine_handle<> waiting_;
    std::list<Wait*>::iterator place_;  // valid while queued_
    bool queued_ = false;               // guarded by the admission's mutex
    AdmissionVerdict verdict_ = AdmissionVerdict::kFull;
  };

  int64_t inside() const { return inside_.load(std::memory_order_relaxed); }
  int64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  bool TakePlace();
  void GrantWaiting();  // mutex_ held

  const int64_t limit_;
  const int64_t max_waiting_;
  // The two are read and written in the order: change your own, then look at the other (both
  // sequentially consistent). So either Leave() sees the one who waits, or that one sees the place.
  std::atomic<int64_t> inside_{0};
  std::atomic<int64_t> waiting_{0};
  std::mutex mutex_;
  std::list<Wait*> queue_;  // guarded by mutex_
};

}  // namespace fathom
