#include "lab/demo/terminal_keys.h"

#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <cstring>

#include "lab/demo/demo_screen.h"

namespace fathom {
namespace {

// What the handler needs: signal handlers take no arguments of their own.
termios former;
int former_fd = -1;

constexpr int kCrashes[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

void PutBack() {
  if (former_fd >= 0) ::tcsetattr(former_fd, TCSANOW, &former);
  former_fd = -1;
}

// The signal is raised again and has its usual effect: SA_RESETHAND.
void OnCrash(int signal) {
  if (former_fd >= 0) {
    [[maybe_unused]] const ssize_t n = ::write(former_fd, kLeaveScreen, std::strlen(kLeaveScreen));
  }
  PutBack();
  ::raise(signal);
}

void SetCrashHandler(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : kCrashes) ::sigaction(signal, &action, nullptr);
}

bool IsInForeground(int fd) { return ::isatty(fd) == 1 && ::tcgetpgrp(fd) == ::getpgrp(); }

}  // namespace

TerminalKeys::TerminalKeys(int fd) : fd_(fd) {
  if (!IsInForeground(fd) || ::tcgetattr(fd, &former) != 0) return;
  former_fd = fd;
  SetCrashHandler(&OnCrash);
  termios raw = former;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  active_ = ::tcsetattr(fd, TCSANOW, &raw) == 0;
}

TerminalKeys::~TerminalKeys() {
  if (former_fd < 0) return;
  PutBack();
  SetCrashHandler(SIG_DFL);
}

std::string TerminalKeys::Take() const {
  std::string keys;
  pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
  // Not in the foreground any more: reading would stop the process.
  if (!active_ || !IsInForeground(fd_) || ::poll(&waiting, 1, 0) != 1) return keys;
  keys.resize(256);
  const ssize_t n = ::read(fd_, keys.data(), keys.size());
  keys.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return keys;
}

}  // namespace fathom
