// Work that would hold up a loop, on threads of its own.
//
// Threads  Run() from any. A job must own what it touches, or share it: nobody waits for it. It
//          tells its loop with Loop::Post().
// Memory   At most kMaxWaiting jobs wait, and all that are there have at most kMaxBytes.
// Ending   Stop() waits for the jobs under way and drops the others; before the loops are gone.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fathom {

class SideWork {
 public:
  static constexpr size_t kMaxWaiting = 256;
  static constexpr size_t kMaxBytes = size_t{256} << 20;

  explicit SideWork(size_t threads);
  ~SideWork();
  SideWork(const SideWork&) = delete;
  SideWork& operator=(const SideWork&) = delete;

  // `bytes` is what the job holds. False: too much is there already, or it has stopped.
  bool Run(std::function<void()> job, size_t bytes = 0);
  void Stop();

 private:
  struct Job {
    std::function<void()> run;
    size_t bytes = 0;
  };

  void Work();

  std::mutex mutex_;  // guards jobs_, bytes_ and stopping_
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  size_t bytes_ = 0;  // of those that wait and those under way
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace fathom
