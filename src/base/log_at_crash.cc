#include "base/log_at_crash.h"

#include <atomic>
#include <csignal>

namespace fathom {
namespace {

std::atomic<const LogWriter*> crashing_log = nullptr;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kOwnHandlers = false;
#else
constexpr bool kOwnHandlers = true;
#endif
#else
constexpr bool kOwnHandlers = true;
#endif

// The handler is reset before it runs: the signal that it raises ends the process as usual.
void WriteAndDie(int signal) {
  const LogWriter* const writer = crashing_log.exchange(nullptr);
  if (writer != nullptr) writer->WriteRest();
  raise(signal);
}

void Handle(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

LogAtCrash::LogAtCrash(const LogWriter& writer) {
  if (!kOwnHandlers) return;
  crashing_log = &writer;
  Handle(WriteAndDie);
}

LogAtCrash::~LogAtCrash() {
  if (!kOwnHandlers) return;
  Handle(SIG_DFL);
  crashing_log = nullptr;
}

}  // namespace fathom
