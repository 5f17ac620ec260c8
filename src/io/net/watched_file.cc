#include "io/net/watched_file.h"

#include <sys/stat.h>

#include <ctime>
#include <fstream>
#include <utility>

namespace fathom {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kAtRestAfter = kSecond / 20;  // file systems stamp in steps of some milliseconds

int64_t Nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

int64_t Clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return Nanoseconds(now);
}

}  // namespace

WatchedFile::Stamp WatchedFile::Look() const {
  struct stat status{};
  if (::stat(path_.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_size, Nanoseconds(status.st_mtim)};
}

bool WatchedFile::Refresh() {
  const Stamp stamp = Look();
  if (at_rest_ && stamp == stamp_) return false;
  stamp_ = stamp;
  // A time in the future, from another machine's clock, must not keep it from being at rest.
  const int64_t age = Clock() - stamp.modified;
  at_rest_ = age < 0 || age > kAtRestAfter;
  std::string text = Read();
  if (text == text_) return false;
  text_ = std::move(text);
  return true;
}

std::string WatchedFile::Read() const {
  std::string text;
  std::ifstream file(path_, std::ios::binary);
  char piece[4096];
  while (file && text.size() < max_bytes_) {
    file.read(piece, sizeof(piece));
    text.append(piece, static_cast<size_t>(file.gcount()));
  }
  if (text.size() > max_bytes_) text.resize(max_bytes_);
  return text;
}

}  // namespace fathom
