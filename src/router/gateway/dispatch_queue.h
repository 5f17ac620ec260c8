// Which request goes first when a rank has room again?
//
// A request for which no rank has room waits here, not in an engine's queue, where it could no
// longer be routed elsewhere. Requests for the same model form one line; those that only one worker
// can serve, another. When load drops on any rank, the first of each line is woken. It is decided
// with the state at that moment, and then either leaves the line or waits on.
//
//   DispatchQueue::Waiter waiter(queue, loop, model, deadline);   // at the end of the line
//   while (...) { co_await waiter; decide }                       // kWoken: it is your turn
//
// Fairness  First come, first served, across loops.
// Bounds    Every waiting request has been admitted, so there are never more than --max-in-flight.
// Threads   Any. Wake() is one atomic operation while no request waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "io/net/wakeable_wait.h"

namespace fathom {

class DispatchQueue {
 public:
  class Waiter;

  // Call after load has dropped on any rank.
  void Wake();
  // How many requests wait in this line; a new one goes behind them.
  size_t Waiting(std::string_view model) const;
  size_t waiting() const { return static_cast<size_t>(waiting_.load(std::memory_order_relaxed)); }

 private:
  using Line = std::list<Waiter*>;

  mutable std::mutex mutex_;
  std::map<std::string, Line, std::less<>> lines_;  // guarded by mutex_; has no empty lines
  // Joining raises waiting_, then the caller reads the ranks. Wake() is called after load has
  // dropped, and reads waiting_. All are sequentially consistent, so either the caller sees the
  // free rank or Wake() sees the waiter.
  std::atomic<int64_t> waiting_{0};
};

// A place in a line, from construction to destruction. Await it again after each turn that found no
// room.
class DispatchQueue::Waiter : public WakeableWait {
 public:
  // The first of its line gets its first turn at once.
  Waiter(DispatchQueue& queue, Loop& loop, std::string_view model, TimePoint deadline);
  ~Waiter();

 private:
  DispatchQueue& queue_;
  std::map<std::string, Line, std::less<>>::iterator line_;
  Line::iterator place_;
};

}  // namespace fathom
