#include "io/net/signals.h"

#include <pthread.h>
#include <signal.h>

namespace fathom {
namespace {

sigset_t Handled() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

}  // namespace

void BlockSignals() {
  const sigset_t set = Handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // a closed peer shows as a write error instead
}

int WaitForSignal(Duration patience) {
  const sigset_t set = Handled();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(patience);
  const timespec wait{.tv_sec = seconds.count(), .tv_nsec = (patience - seconds).count()};
  const int signal = sigtimedwait(&set, nullptr, &wait);
  return signal > 0 ? signal : 0;
}

}  // namespace fathom
