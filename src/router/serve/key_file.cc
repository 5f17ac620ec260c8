#include "router/serve/key_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"

namespace fathom {
namespace {

int64_t Nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

}  // namespace

KeyFile::Stamp KeyFile::Look() const {
  struct stat status{};
  if (::stat(path_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .modified = Nanoseconds(status.st_mtim),
          .changed = Nanoseconds(status.st_ctim)};
}

Result<std::string> KeyFile::ReadText(const Stamp& stamp) const {
  struct stat status{};
  if (read_ && stamp == Stamp() && ::stat(path_.c_str(), &status) == 0) {
    return Fail(Blame::kCaller, "is not a regular file");
  }
  if (stamp.size > static_cast<off_t>(kMaxBytes)) {
    return Fail(Blame::kCaller, "has more than {} bytes", kMaxBytes);
  }
  return ReadFile(path_);
}

Result<std::vector<std::string>> KeyFile::Read() {
  std::vector<std::string> keys = others_;
  if (!named()) return keys;
  const Stamp stamp = Look();
  auto text = ReadText(stamp);
  read_ = seen_ = stamp;
  if (!text) {
    return std::unexpected(std::move(text).error().In(fmt::format("{} {}", option_, path_)));
  }
  for (const std::string_view line : SplitAny(*text, "\r\n")) {
    const std::string_view key = Trim(line);
    if (!key.empty() && !key.starts_with('#')) keys.emplace_back(key);
  }
  if (keys.empty()) return Fail(Blame::kCaller, "{} {} contains no key", option_, path_);
  return keys;
}

bool KeyFile::HasChanged() {
  if (!named()) return false;
  const Stamp now = Look();
  const bool settled = now == seen_;
  seen_ = now;
  return settled && now != read_;
}

}  // namespace fathom
