// Suspends a coroutine until it is woken, its deadline passes, or it is cancelled.
//
//   WakeableWait wait(loop, deadline);
//   queue.push_back(&wait);                    // the thread that takes it out calls wait.Wake()
//   const WakeCause cause = co_await wait;
//
// Threads       Wake() may be called from any thread and posts to the loop. Everything else belongs
//               to the loop. What the waker wrote before Wake() is visible after the await.
// Cancellation  Cancel(), the deadline and a wake compete: the first one resumes the coroutine, the
//               others do not resume it again.
// Early wakes   A wake that arrives while the coroutine runs is kept: the next await does not
//               suspend. A cancellation that arrives then has no effect.
// Deadline      Applies to each await. kNever: none.
// Lifetime      No thread may call Wake() after destruction. A queue ensures this with its mutex:
//               wakers find the wait in the queue, and its owner removes it before destroying it.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>

#include "io/net/loop.h"

namespace fathom {

enum class WakeCause : uint8_t { kWoken, kTimedOut, kCancelled };

class WakeableWait {
 public:
  explicit WakeableWait(Loop& loop, TimePoint deadline = kNever)
      : loop_(loop), deadline_(deadline), timer_(*this) {}
  WakeableWait(const WakeableWait&) = delete;
  WakeableWait& operator=(const WakeableWait&) = delete;

  bool await_ready() const { return false; }
  bool await_suspend(std::coroutine_handle<> waiting);
  WakeCause await_resume();

  // Any thread.
  void Wake();
  // On the loop: resumes the coroutine inside this call.
  void WakeNow();
  // On the loop: resumes the coroutine inside this call, unless a wake has come first.
  void Cancel() { GiveUp(WakeCause::kCancelled); }

 private:
  enum class State : uint8_t {
    kRunning,  // the coroutine runs
    kWoken,    // it is about to be resumed, or its next await does not suspend
    kSuspended,
  };
  struct Deadline : Timer {
    explicit Deadline(WakeableWait& w) : Timer(&OnFire), wait(w) {}
    static void OnFire(Timer& timer) {
      static_cast<Deadline&>(timer).wait.GiveUp(WakeCause::kTimedOut);
    }
    WakeableWait& wait;
  };

  void GiveUp(WakeCause cause);
  void Resume();

  Loop& loop_;
  const TimePoint deadline_;
  Deadline timer_;
  std::coroutine_handle<> waiting_;
  WakeCause cause_ = WakeCause::kWoken;
  // Wake() and await_resume() both exchange it, so either the wake comes first and the coroutine
  // sees what the waker wrote, or the wake is remembered.
  std::atomic<State> state_{State::kRunning};
};

}  // namespace fathom
