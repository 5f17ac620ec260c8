// Which addresses does this name have?
//
// Threads  getaddrinfo() blocks, so it runs on a thread of its own; Resolve() is called on any loop
//          and answers there. Numeric addresses never leave the loop.
// Memory   Answers are kept for kTtl; a failed lookup of a name known earlier falls back to the old
//          answer. At most kMaxNames names are kept.
#pragma once

#include <condition_variable>
#include <coroutine>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/task.h"

namespace fathom {

class Resolver {
 public:
  static constexpr Duration kTtl = std::chrono::seconds(10);
  static constexpr size_t kMaxNames = 4096;

  Resolver();
  ~Resolver();

  Task<Result<std::vector<Address>>> Resolve(Loop& loop, std::string host, uint16_t port);

 private:
  struct Question;
  struct Answer {
    std::vector<Address> addresses;
    TimePoint at;
  };

  void Work();
  Result<std::vector<Address>> Lookup(const std::string& host);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Question*> questions_;                  // guarded by mutex_
  bool stopping_ = false;                            // guarded by mutex_
  std::unordered_map<std::string, Answer> answers_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace fathom
