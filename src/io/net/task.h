// A coroutine that its caller awaits.
//
//   Task<int> Answer(Socket& s) { ... co_return 42; }
//   const int n = co_await Answer(s);
//
// A task starts at once and runs until it first suspends; if it never suspends, its caller does not
// either. Every task must either be awaited or be passed to Spawn(). A task belongs to the thread
// (the event loop) on which it was started.
//
// Memory  Frames come from a per-thread free list, because a relay starts several per request.
// Errors  Tasks return a Result or a status; an exception that escapes a task terminates the
//         process.
//
// g++ 12 destroys some temporaries twice in a full expression that contains co_await. Therefore all
// our code follows three rules: each awaited call is on its own line, lambdas and aggregates are
// named first, and no capturing lambda is itself a coroutine.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "base/check.h"

namespace fathom {

// Where coroutine frames come from.
void* AllocateFrame(size_t size);
void FreeFrame(void* frame, size_t size);

namespace task_internal {

struct PromiseBase {
  std::coroutine_handle<> continuation;
  bool detached = false;

  static void* operator new(size_t size) { return AllocateFrame(size); }
  static void operator delete(void* frame, size_t size) { FreeFrame(frame, size); }

  std::suspend_never initial_suspend() noexcept { return {}; }
  [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      if (self.promise().continuation) return self.promise().continuation;
      if (self.promise().detached) self.destroy();
      return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  std::coroutine_handle<Promise> get_return_object() {
    return std::coroutine_handle<Promise>::from_promise(*this);
  }
  template <class U>
  void return_value(U&& v) {
    value.emplace(std::forward<U>(v));
  }
  T Take() { return *std::move(value); }
};

template <>
struct Promise<void> : PromiseBase {
  std::coroutine_handle<Promise> get_return_object() {
    return std::coroutine_handle<Promise>::from_promise(*this);
  }
  void return_void() {}
  void Take() {}
};

}  // namespace task_internal

template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = task_internal::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task(Handle handle) : handle_(handle) {}  // NOLINT: what a coroutine returns
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (!handle_) return;
    CHECK(handle_.done());
    handle_.destroy();
  }

  bool await_ready() const noexcept { return handle_.done(); }
  void await_suspend(std::coroutine_handle<> waiting) noexcept {
    handle_.promise().continuation = waiting;
  }
  T await_resume() { return handle_.promise().Take(); }

  // The task continues without an awaiter and frees itself when it ends.
  void Detach() && {
    const Handle handle = std::exchange(handle_, nullptr);
    if (handle.done()) {
      handle.destroy();
    } else {
      handle.promise().detached = true;
    }
  }

 private:
  Handle handle_;
};

inline void Spawn(Task<void> task) { std::move(task).Detach(); }

}  // namespace fathom
