// For tests: coroutines wait at the gate until it is opened. One thread.
#pragma once

#include <coroutine>
#include <utility>
#include <vector>

namespace fathom {

class Gate {
 public:
  explicit Gate(bool open = false) : open_(open) {}

  bool await_ready() const { return open_; }
  void await_suspend(std::coroutine_handle<> waiting) { waiting_.push_back(waiting); }
  void await_resume() const {}

  void Open() {
    open_ = true;
    for (const auto handle : std::exchange(waiting_, {})) handle.resume();
  }
  void Shut() { open_ = false; }

 private:
  bool open_;
  std::vector<std::coroutine_handle<>> waiting_;
};

}  // namespace fathom
