// Which addresses does the hosts file give to this name?
//
// Reads /etc/hosts or a file of its form: an address, then names, on each line. A name that stands
// on several lines has all of their addresses. Lines that cannot be read are skipped.
//
// Threads  One.
// Memory   The first kMaxBytes of the file, kMaxLine of a line and kMaxAddresses of a name are
// used.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/net/address.h"
#include "io/net/watched_file.h"

namespace fathom {

class HostsFile {
 public:
  static constexpr size_t kMaxBytes = size_t{4} << 20;
  static constexpr size_t kMaxLine = 4096;
  static constexpr size_t kMaxAddresses = 1024;

  explicit HostsFile(std::string path)
      : file_(std::move(path), kMaxBytes), table_(Parse(file_.text())) {}

  // Reads the file again if it has changed. True: it had.
  bool Refresh();
  // nullptr: the file does not have this name. All ports are 0.
  const std::vector<Address>* Find(std::string_view name) const;

  // By lower-case name, without a dot at the end.
  using Table = std::unordered_map<std::string, std::vector<Address>>;
  static Table Parse(std::string_view text);

 private:
  WatchedFile file_;
  Table table_;
};

}  // namespace fathom
