#include "diagnose/lint/file_rewrite.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/file.h"

namespace fathom {
namespace {

std::unexpected<Error> SystemFailure() { return Fail(Blame::kCaller, "{}", std::strerror(errno)); }

// A new file that is gone with this object, unless it has got its name.
class ReplacementFile {
 public:
  static Result<ReplacementFile> Beside(const std::string& path) {
    std::string name = path + ".XXXXXX";
    const int fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) return SystemFailure();
    return ReplacementFile(fd, std::move(name));
  }

  ReplacementFile(ReplacementFile&& other) noexcept
      : fd_(other.fd_), name_(std::move(other.name_)) {
    other.fd_ = -1;
    other.name_.clear();
  }
  ReplacementFile(const ReplacementFile&) = delete;
  ReplacementFile& operator=(const ReplacementFile&) = delete;
  ReplacementFile& operator=(ReplacementFile&&) = delete;
  ~ReplacementFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  Result<> Write(std::string_view text, mode_t mode) {
    while (!text.empty()) {
      const ssize_t count = ::write(fd_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return SystemFailure();
      text.remove_prefix(static_cast<size_t>(count));
    }
    if (::fchmod(fd_, mode) != 0 || ::fsync(fd_) != 0) return SystemFailure();
    return {};
  }

  Result<> Become(const std::string& path) {
    if (std::rename(name_.c_str(), path.c_str()) != 0) return SystemFailure();
    name_.clear();
    return {};
  }

  const std::string& name() const { return name_; }

 private:
  ReplacementFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  int fd_;
  std::string name_;
};

}  // namespace

Result<> RewriteFile(const std::string& path, std::string_view before, std::string_view after) {
  std::error_code problem;
  const std::string real = std::filesystem::canonical(path, problem).string();
  if (problem) return Fail(Blame::kCaller, "{}", problem.message());
  struct stat status{};
  if (::stat(real.c_str(), &status) != 0) return SystemFailure();
  if (!S_ISREG(status.st_mode)) return Fail(Blame::kCaller, "is not a regular file");
  TRY(ReplacementFile draft, ReplacementFile::Beside(real));
  TRY_VOID(draft.Write(after, status.st_mode & 07777));
  TRY(const std::string back, ReadFile(draft.name()));
  if (back != after) return Fail(Blame::kCaller, "the written file reads back differently");
  TRY(const std::string now, ReadFile(real));
  if (now != before) return Fail(Blame::kCaller, "has changed in the meantime");
  return draft.Become(real);
}

}  // namespace fathom
