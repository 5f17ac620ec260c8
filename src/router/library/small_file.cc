#include "router/library/small_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace fathom {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

std::unexpected<Error> FromErrno() { return Fail(Blame::kCaller, "{}", std::strerror(errno)); }

std::unexpected<Error> TooLarge(size_t most) {
  return Fail(Blame::kCaller, "has more than {} MiB", most >> 20);
}

bool WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    content.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

Result<std::string> ReadRegularFile(const std::string& path, size_t most_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return FromErrno();
  struct stat about{};
  if (fstat(file.get(), &about) != 0) return FromErrno();
  if (!S_ISREG(about.st_mode)) return Fail(Blame::kCaller, "is not a regular file");
  if (static_cast<uint64_t>(about.st_size) > most_bytes) return TooLarge(most_bytes);
  std::string content;
  char buffer[65536];
  for (;;) {
    const ssize_t count = read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FromErrno();
    if (count == 0) return content;
    content.append(buffer, static_cast<size_t>(count));
    if (content.size() > most_bytes) return TooLarge(most_bytes);  // it grows while it is read
  }
}

Result<void> WriteWhole(const std::string& path, std::string_view content) {
  std::string unfinished = path + ".XXXXXX";
  const Descriptor file(mkostemp(unfinished.data(), O_CLOEXEC));
  if (file.get() < 0) return FromErrno();
  constexpr mode_t kMode = 0644;  // other users' tools may read the cache
  const bool written = WriteAll(file.get(), content) && fchmod(file.get(), kMode) == 0 &&
                       fsync(file.get()) == 0 && rename(unfinished.c_str(), path.c_str()) == 0;
  if (written) return {};
  const auto failure = FromErrno();
  unlink(unfinished.c_str());
  return failure;
}

Result<void> LinkWhole(const std::string& path, const std::string& target) {
  const std::string unfinished = fmt::format("{}.{}.link", path, getpid());
  unlink(unfinished.c_str());
  if (symlink(target.c_str(), unfinished.c_str()) == 0 &&
      rename(unfinished.c_str(), path.c_str()) == 0) {
    return {};
  }
  const auto failure = FromErrno();
  unlink(unfinished.c_str());
  return failure;
}

}  // namespace fathom
