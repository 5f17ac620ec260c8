// Which keys has the user pressed? One by one, without Enter and without echo, as long as this
// exists; Ctrl-C still is SIGINT.
//
// The terminal is put back by the destructor, and by a handler if the process crashes or gets
// SIGQUIT. There is one terminal, so there must be only one of these.
#pragma once

#include <string>

namespace fathom {

class TerminalKeys {
 public:
  // Reads no keys unless `fd` is a terminal and this process is in its foreground.
  explicit TerminalKeys(int fd);
  ~TerminalKeys();
  TerminalKeys(const TerminalKeys&) = delete;
  TerminalKeys& operator=(const TerminalKeys&) = delete;

  bool active() const { return active_; }
  // Those since the last call. Does not wait.
  std::string Take() const;

 private:
  const int fd_;
  bool active_ = false;
};

}  // namespace fathom
