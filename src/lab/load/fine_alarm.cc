#include "lab/load/fine_alarm.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace fathom {

FineAlarm::FineAlarm(Loop& loop)
    : loop_(loop),
      fd_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      source_(loop.Register(fd_)) {}

FineAlarm::~FineAlarm() {
  source_.reader = nullptr;  // who waits when the loop has ended is never resumed
  loop_.Release(source_);
  ::close(fd_);
}

// The descriptor is never read: setting it again takes back what it has announced, and the loop is
// told of edges.
FineAlarm::Wait FineAlarm::Until(TimePoint due) {
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t ns = std::max<int64_t>(Duration(due.time_since_epoch()).count(), 1);
  itimerspec when{};
  when.it_value.tv_sec = ns / kSecond;
  when.it_value.tv_nsec = ns % kSecond;
  CHECK(timerfd_settime(fd_, TFD_TIMER_ABSTIME, &when, nullptr) == 0);
  return {*this, due};
}

}  // namespace fathom
