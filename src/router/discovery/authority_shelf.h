// Which certificate authorities does this file name? Read once for all workers that it is for.
//
// The system's own are several hundred: reading them for each of 2,000 workers would stall the
// caller for seconds. A file that has changed is read again, and only for workers that join then.
//
// Threads  Any.
// Memory   One context per file that a worker in the fleet uses; at most kMost files are looked
//          after, others are read each time.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "io/net/tls.h"

namespace fathom {

class AuthorityShelf {
 public:
  static constexpr size_t kMost = 256;

  // An empty name: the system's.
  Result<std::shared_ptr<const TlsClientContext>> Of(const std::string& ca_file);

 private:
  struct Read {
    std::string stamp;  // of the file, when it was read
    std::weak_ptr<const TlsClientContext> context;
  };

  std::mutex mutex_;
  std::map<std::string, Read> read_;  // guarded by mutex_
};

}  // namespace fathom
