// Runs coroutines in tests: on a loop with its own thread, or on a loop of the test's thread.
//
//   LoopThread thread;
//   const auto answer = thread.Complete([&] { return Fetch(thread.loop(), ...); });
//
//   Loop loop;
//   const auto answer = RunToEnd(loop, [&] { return Fetch(loop, ...); });
//
// Both start the task on the loop, wait until it has ended, and return its result.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>

#include "io/net/loop.h"
#include "io/net/task.h"

namespace fathom {

namespace loop_thread_internal {

// What the task that `Start` makes returns.
template <class Start>
using ResultOf = decltype(std::declval<std::invoke_result_t<const Start&>&>().await_resume());

template <class T>
using Kept = std::optional<std::conditional_t<std::is_void_v<T>, std::monostate, T>>;

template <class T>
Task<void> Follow(Task<T> task, Kept<T>& result, std::function<void()> done) {
  if constexpr (std::is_void_v<T>) {
    co_await task;
  } else {
    T value = co_await task;
    result.emplace(std::move(value));
  }
  done();
}

}  // namespace loop_thread_internal

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

  // Runs everything that is posted or due, and what that posts in turn.
  void Settle() {
    for (int i = 0; i < 3; ++i) Call([] {});
  }

  // Starts the task that `start` makes on the loop, waits until it has ended, returns its result.
  template <class Start, class T = loop_thread_internal::ResultOf<Start>>
  T Complete(const Start& start) {
    loop_thread_internal::Kept<T> result;
    std::promise<void> done;
    loop_.Post([&] {
      Spawn(loop_thread_internal::Follow<T>(start(), result, [&done] { done.set_value(); }));
    });
    done.get_future().wait();
    Call([] {});  // its frames are destroyed when this returns
    if constexpr (!std::is_void_v<T>) return *std::move(result);
  }

  void Stop() {
    if (!thread_.joinable()) return;
    loop_.Stop();
    thread_.join();
  }

 private:
  Loop loop_;
  std::thread thread_;
};

// Runs the loop on this thread until the task that `start` makes has ended, returns its result.
template <class Start, class T = loop_thread_internal::ResultOf<Start>>
T RunToEnd(Loop& loop, const Start& start) {
  loop_thread_internal::Kept<T> result;
  loop.Post(
      [&] { Spawn(loop_thread_internal::Follow<T>(start(), result, [&loop] { loop.Stop(); })); });
  loop.Run();
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace fathom
