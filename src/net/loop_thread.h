// Loops for tests: one on a thread of its own, and one that runs a single coroutine to its end.
#pragma once

#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "net/loop.h"
#include "net/task.h"

namespace fathom {

class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.Run(); }) {}
  ~LoopThread() { Stop(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  Loop& loop() { return loop_; }

  // Runs `work` on the loop and waits until it has returned.
  void Call(std::function<void()> work) {
    std::promise<void> done;
    loop_.Post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  // Starts the coroutine that `start` makes on the loop and waits until it has ended.
  void Complete(std::function<Task<void>()> start) {
    std::promise<void> done;
    loop_.Post([&] { Spawn(Follow(start(), done)); });
    done.get_future().wait();
    Call([] {});  // its frames are gone when this returns
  }

  void Stop() {
    if (!thread_.joinable()) return;
    loop_.Stop();
    thread_.join();
  }

 private:
  static Task<void> Follow(Task<void> task, std::promise<void>& done) {
    co_await task;
    done.set_value();
  }

  Loop loop_;
  std::thread thread_;
};

inline Task<void> ThenStop(Loop& loop, Task<void> task) {
  co_await task;
  loop.Stop();
}

// Runs the loop on this thread until the coroutine that `start` makes has ended.
inline void RunToEnd(Loop& loop, const std::function<Task<void>()>& start) {
  loop.Post([&] { Spawn(ThenStop(loop, start())); });
  loop.Run();
}

}  // namespace fathom
