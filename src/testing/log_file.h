// A log whose lines a test can read back.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/check.h"
#include "base/log.h"

namespace fathom {

class LogFile {
 public:
  LogFile() : fd_(::memfd_create("log", MFD_CLOEXEC)), log_(fd_) { CHECK(fd_ >= 0); }
  ~LogFile() { ::close(fd_); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  Log& log() { return log_; }
  std::string text() const {
    std::string all(1 << 16, '\0');
    const ssize_t size = ::pread(fd_, all.data(), all.size(), 0);
    all.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return all;
  }
  size_t Count(std::string_view words) const {
    const std::string all = text();
    size_t count = 0;
    for (size_t at = 0; (at = all.find(words, at)) != std::string::npos; ++at) ++count;
    return count;
  }

 private:
  const int fd_;
  Log log_;
};

}  // namespace fathom
