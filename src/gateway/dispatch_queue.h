// Who goes first when a rank has room again?
//
// A request for which no rank has room waits here, not in an engine's queue, where it could no
// longer be moved. Those who ask for the same model stand in one line. When load drops somewhere,
// the first of each line is told to try; it chooses with what is known then, and leaves or waits
// on.
//
//   DispatchQueue::Waiter waiter(queue, loop, model, deadline);   // at the end of the line
//   while (...) { co_await waiter; try }                          // kTry: it is your turn
//
// Fairness  First come, first served, across loops.
// Bounds    Whoever waits has been admitted, so there are never more than --max-in-flight.
// Threads   Any. Wake() is one atomic while nobody waits.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "net/loop.h"

namespace fathom {

class DispatchQueue {
 public:
  enum class Signal : uint8_t { kTry, kTimedOut, kCancelled };

  class Waiter;

  // Load has dropped somewhere.
  void Wake();
  // How many stand in this line; a newcomer goes behind them.
  size_t Waiting(std::string_view model) const;
  size_t waiting() const { return static_cast<size_t>(waiting_.load(std::memory_order_relaxed)); }

 private:
  using Line = std::list<Waiter*>;

  void Tell(Waiter& first);  // mutex_ held

  mutable std::mutex mutex_;
  std::map<std::string, Line, std::less<>> lines_;  // guarded by mutex_; none is empty
  // Joining raises waiting_, then the caller looks at the ranks; Wake() comes after load has
  // dropped, and looks at waiting_. All are sequentially consistent, so either the caller sees the
  // room or Wake() sees the one who waits.
  std::atomic<int64_t> waiting_{0};
};

// A place in a line, from construction to destruction.
class DispatchQueue::Waiter {
 public:
  // The first of its line gets its first turn at once.
  Waiter(DispatchQueue& queue, Loop& loop, std::string_view model, TimePoint deadline);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  bool await_ready() { return false; }
  bool await_suspend(std::coroutine_handle<> waiting);
  Signal await_resume() const { return signal_; }
  // On the loop that waits.
  void Cancel() { GiveUp(Signal::kCancelled); }

 private:
  friend class DispatchQueue;

  enum class State : uint8_t {
    kAwake,  // it runs
    kTold,   // it runs, or its resumption is under way, and has been told to try (again)
    kAsleep,
  };
  struct Deadline : Timer {
    explicit Deadline(Waiter& w) : Timer(&OnFire), waiter(w) {}
    static void OnFire(Timer& timer) {
      static_cast<Deadline&>(timer).waiter.GiveUp(Signal::kTimedOut);
    }
    Waiter& waiter;
  };

  void GiveUp(Signal signal);
  void Resume(Signal signal);

  DispatchQueue& queue_;
  Loop& loop_;
  const TimePoint deadline_;
  Deadline timer_;
  std::map<std::string, Line, std::less<>>::iterator line_;
  Line::iterator place_;
  State state_ = State::kAwake;  // guarded by the queue's mutex
  std::coroutine_handle<> waiting_;
  Signal signal_ = Signal::kTry;
};

}  // namespace fathom
