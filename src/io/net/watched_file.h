// Which text does this small configuration file have now?
//
// Refresh() asks the file system whether the file may have changed, and reads it only then. Links
// are followed, so a link that points elsewhere is a change; so are creation and removal. A file
// that was written within the last moments before it was read may be written again without a new
// time stamp; it is read again until it is at rest.
//
// Memory  The first `max_bytes` of the file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace fathom {

class WatchedFile {
 public:
  WatchedFile(std::string path, size_t max_bytes) : path_(std::move(path)), max_bytes_(max_bytes) {
    Refresh();
  }

  // True: the text is another one than before.
  bool Refresh();
  // "" if the file cannot be read.
  const std::string& text() const { return text_; }
  const std::string& path() const { return path_; }

 private:
  struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;  // 0: there is no file
    off_t size = 0;
    int64_t modified = 0;  // nanoseconds

    bool operator==(const Stamp&) const = default;
  };

  Stamp Look() const;
  std::string Read() const;

  const std::string path_;
  const size_t max_bytes_;
  Stamp stamp_;
  bool at_rest_ = false;
  std::string text_;
};

}  // namespace fathom
