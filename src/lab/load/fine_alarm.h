// When is it time, to within microseconds? The loop's own timers tick in milliseconds, and requests
// that start in bursts queue behind each other, which would be measured as the server's latency.
//
// Threads  One loop, which must outlive it. One coroutine waits at a time.
#pragma once

#include "io/net/loop.h"

namespace fathom {

class FineAlarm {
 public:
  class Wait;

  explicit FineAlarm(Loop& loop);
  ~FineAlarm();
  FineAlarm(const FineAlarm&) = delete;
  FineAlarm& operator=(const FineAlarm&) = delete;

  // co_await alarm.Until(due): kOk when it is time, kCancelled after Cancel().
  Wait Until(TimePoint due);
  void Cancel() { loop_.Cancel(source_); }

 private:
  Loop& loop_;
  const int fd_;
  Source& source_;
};

class FineAlarm::Wait final : public IoOperation {
 public:
  Wait(FineAlarm& alarm, TimePoint due)
      : IoOperation(alarm.loop_, alarm.source_, kNever, Want::kRead), alarm_(alarm), due_(due) {}
  IoStatus await_resume() const { return status_; }

 private:
  bool Attempt() override { return alarm_.loop_.now() >= due_; }

  FineAlarm& alarm_;
  const TimePoint due_;
};

}  // namespace fathom
