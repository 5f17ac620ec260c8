// Which keys do an option and its file hold, and has the file changed?
//
// Threads  One at a time. Reading blocks: not on a loop.
// Memory   A file has at most kMaxBytes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fathom {

class KeyFile {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  // `option` is the name of the file's option. `others` are keys from elsewhere, `path` may be
  // empty.
  KeyFile(std::string_view option, std::vector<std::string> others, std::string path)
      : option_(option), others_(std::move(others)), path_(std::move(path)) {}

  std::string_view option() const { return option_; }
  bool named() const { return !path_.empty(); }
  // Whether there are keys, without reading them.
  bool configured() const { return named() || !others_.empty(); }

  // All keys, one per line of the file, where # begins a comment. An error if there is a file and
  // no key at all. Only the first time something else than a regular file is read: a shell's
  // <(...) can be read once.
  Result<std::vector<std::string>> Read();

  // True once the file is not the one that was read, and has been the same for two calls: it is
  // not being written at the moment.
  bool HasChanged();

 private:
  // What changes with the content; zeros if there is no regular file.
  struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    int64_t modified = 0;
    int64_t changed = 0;

    friend bool operator==(const Stamp&, const Stamp&) = default;
  };

  Stamp Look() const;
  Result<std::string> ReadText(const Stamp& stamp) const;

  const std::string_view option_;
  const std::vector<std::string> others_;
  const std::string path_;
  std::optional<Stamp> read_;  // when the file was read
  Stamp seen_;                 // at the last call of HasChanged()
};

}  // namespace fathom
