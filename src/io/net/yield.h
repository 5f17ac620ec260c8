// Lets everything else on a loop have its turn before a coroutine goes on.
//
//   LoopShare share(loop);
//   while (More()) {
//     if (share.Spent(bytes)) co_await Yield(loop);
//     ...
//   }
#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>

#include "base/clock.h"
#include "io/net/loop.h"

namespace fathom {

class Yield {
 public:
  explicit Yield(Loop& loop) : loop_(loop) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    loop_.Post([waiting] { waiting.resume(); });
  }
  void await_resume() const {}

 private:
  Loop& loop_;
};

// How much one stream may do before it yields: bounded in bytes, because reading them takes memory
// bandwidth from others, and in time, because some bytes take longer to apply than others.
class LoopShare {
 public:
  static constexpr size_t kBytes = 256 << 10;
  static constexpr Duration kTime = std::chrono::milliseconds(2);

  explicit LoopShare(Loop& loop) : loop_(loop) {}

  // Counts `bytes`. True: yield now; the next call begins another share.
  bool Spent(size_t bytes) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (loop_.now() != turn_) {
      turn_ = loop_.now();
      began_ = now;
      bytes_ = 0;
    }
    bytes_ += bytes;
    if (bytes_ < kBytes && now - began_ < kTime) return false;
    turn_ = TimePoint();
    return true;
  }

 private:
  Loop& loop_;
  TimePoint turn_;  // when the loop's turn began in which `began_` lies
  TimePoint began_;
  size_t bytes_ = 0;
};

}  // namespace fathom
