// One thread's event loop: readiness of descriptors, deadlines, and calls from other threads.
//
// Threads    Everything but Post() and Stop() belongs to the thread that is in Run(). A socket, a
//            timer and the coroutine that waits for them stay on one loop from creation to
//            destruction.
// Readiness  Edge-triggered epoll, registered once per descriptor for all directions. The Source
//            remembers the reported readiness, so a read that would return EAGAIN is not tried.
// Lateness   Everything that is ready is handled before deadlines fire. A loop that was held up, by
//            much work or by the scheduler, does not report its own delay as a peer's time-out.
// Safety     A Source that is released while a batch of events is handled stays allocated until the
//            end of the batch, so a late event for it is recognised and ignored.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "io/net/timer_wheel.h"

namespace fathom {

class IoOperation;
class Loop;

// Is notified when a peer closes the connection, even while no read is waiting.
class HangupWatcher {
 public:
  virtual void OnHangup() = 0;

 protected:
  ~HangupWatcher() = default;
};

// A descriptor as the loop sees it.
struct Source {
  int fd = -1;
  bool readable = false;
  bool writable = false;
  bool hung_up = false;
  bool input_ends_write = false;  // input also wakes the writer
  IoOperation* reader = nullptr;
  IoOperation* writer = nullptr;
  HangupWatcher* watcher = nullptr;
};

enum class IoStatus : uint8_t {
  kOk,
  kEof,        // the peer has finished sending
  kTimeout,    // the deadline passed
  kCancelled,  // Cancel() was called
  kError,      // the connection is broken
};

// What a coroutine awaits and a Loop completes: an attempt that is repeated whenever the descriptor
// becomes ready, until it succeeds or fails, its deadline passes or it is cancelled.
class IoOperation {
 public:
  bool await_ready() { return Attempt(); }
  void await_suspend(std::coroutine_handle<> waiting);

  IoOperation(const IoOperation&) = delete;
  IoOperation& operator=(const IoOperation&) = delete;

 protected:
  enum class Want : uint8_t { kRead, kWrite };

  IoOperation(Loop& loop, Source& source, TimePoint deadline, Want want)
      : want_(want), loop_(loop), source_(source), deadline_(deadline), timer_(*this) {}
  virtual ~IoOperation() = default;  // g++ warns if it is not virtual: the class has a friend

  // One attempt. True: finished, successfully or not, and status_ is set. False: wait for want_.
  virtual bool Attempt() = 0;

  // Another operation waits where this one would have to. Under TLS a read may need room to write,
  // and a write may need input: messages about keys of the peer decide that. Such a connection is
  // given up.
  bool IsTaken() const {
    const IoOperation* const there = want_ == Want::kRead ? source_.reader : source_.writer;
    return there != nullptr && there != this;
  }
  bool Break() {
    status_ = IoStatus::kError;
    return true;
  }

  IoStatus status_ = IoStatus::kOk;
  Want want_;

 private:
  friend class Loop;

  struct Deadline : Timer {
    explicit Deadline(IoOperation& op) : Timer(&OnFire), operation(op) {}
    static void OnFire(Timer& timer) {
      static_cast<Deadline&>(timer).operation.Interrupt(IoStatus::kTimeout);
    }
    IoOperation& operation;
  };

  void Park();
  void Interrupt(IoStatus status);

  Loop& loop_;
  Source& source_;
  const TimePoint deadline_;
  Deadline timer_;
  std::coroutine_handle<> waiting_;
};

// co_await loop.Sleep(10ms);
class SleepOperation {
 public:
  SleepOperation(Loop& loop, TimePoint until) : timer_(*this), loop_(loop), until_(until) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiting);
  void await_resume() const {}

 private:
  struct Alarm : Timer {
    explicit Alarm(SleepOperation& op) : Timer(&OnFire), operation(op) {}
    static void OnFire(Timer& timer) { static_cast<Alarm&>(timer).operation.waiting_.resume(); }
    SleepOperation& operation;
  };

  Alarm timer_;
  Loop& loop_;
  const TimePoint until_;
  std::coroutine_handle<> waiting_;
};

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Handles events until Stop().
  void Run();

  // Any thread. Run() returns soon; coroutines that still wait are never resumed.
  void Stop();

  // Any thread. Calls `work` on this loop's thread, in order. For control messages, not for data:
  // the queue is unbounded.
  void Post(std::move_only_function<void()> work);

  // When the current turn began, or a moment later. Precise enough for deadlines and latencies, and
  // costs no clock read.
  TimePoint now() const { return now_; }

  SleepOperation Sleep(Duration duration) { return SleepOperation(*this, now_ + duration); }

  TimerWheel& timers() { return timers_; }

  // The loop watches the descriptor until Release(). The caller closes the descriptor right after
  // that; the close removes it from epoll.
  Source& Register(int fd);
  void Release(Source& source);

  // The same for a descriptor that a library owns and closes later: only input is reported, and
  // Forget() removes it from epoll.
  Source& RegisterInput(int fd);
  void Forget(Source& source);

  // Ends the operations that wait on the source, in this turn but not inside this call.
  void Cancel(Source& source);

  // Repeats the attempt of the source's waiting reader although epoll has reported nothing, in the
  // next turn and not inside this call.
  void Retry(Source& source);

 private:
  friend class IoOperation;

  Source& Register(int fd, uint32_t events);
  void Handle(Source& source, uint32_t events);
  void Advance(IoOperation*& slot);
  void FireTimers(int events, TimePoint known);
  void RetryReaders();
  void ResumeInterrupted();
  void RunPosted();
  int WaitMilliseconds(TimePoint now);

  const int epoll_;
  const int wake_;
  Source* wake_source_ = nullptr;
  TimePoint now_;
  int full_batches_ = 0;  // in a row
  TimerWheel timers_;
  std::deque<Source> sources_;  // stable addresses; recycled through free_
  std::vector<Source*> free_;
  std::vector<Source*> released_;  // in this turn; reusable after it
  std::vector<IoOperation*> interrupted_;
  std::vector<Source*> retries_;

  std::atomic<bool> stopping_{
      false};  // read by Run(), written by Stop(), which then wakes the loop
  std::atomic<bool> posted_any_{false};  // lets a turn without posts skip the mutex
  std::mutex mutex_;
  std::vector<std::move_only_function<void()>> posted_;  // guarded by mutex_
};

}  // namespace fathom
