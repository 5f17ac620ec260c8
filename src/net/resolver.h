// Which addresses does this name have?
//
// Threads  getaddrinfo() blocks, so it runs on a thread of its own; Resolve() is called on any loop
//          and answers there. Numeric addresses never leave the loop.
// Memory   Answers are kept for kTtl; a failed lookup of a name known earlier falls back to the old
//          answer. At most kMaxNames names are kept.
// Ending   Stop() does not wait for a name server: a lookup under way ends in its own time, on a
//          thread that touches nothing of anybody's afterwards.
#pragma once

#include <memory>
#include <string>
#include <thread>
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
  // Asks now, whatever is remembered: a name that cannot be found any more is an error.
  Task<Result<std::vector<Address>>> Ask(Loop& loop, std::string host, uint16_t port);

  // No question is answered afterwards. Before the loops that have asked are gone.
  void Stop();

 private:
  struct Question;
  struct Desk;

  Task<Result<std::vector<Address>>> Put(Loop& loop, std::string host, uint16_t port, bool fresh);
  static void Work(const std::shared_ptr<Desk>& desk);
  static Result<std::vector<Address>> Lookup(const std::string& host);

  const std::shared_ptr<Desk> desk_;  // shared with the thread, which may outlive the resolver
  std::thread thread_;
};

}  // namespace fathom
