// Runs work that would block a loop, on separate threads.
//
// Threads  Run() from any thread. A job must own what it touches, or share ownership, because no
//          caller waits for it. It reports back to its loop with Loop::Post().
// Memory   At most kMaxWaiting jobs wait; waiting and running jobs together hold at most kMaxBytes.
// Ending   Stop() waits for the running jobs and drops the waiting ones. Call it before the loops
//          are destroyed.
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

  // `bytes` is the memory that the job holds. False: a limit is reached, or Stop() was called.
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
  size_t bytes_ = 0;  // of waiting and running jobs
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace fathom
