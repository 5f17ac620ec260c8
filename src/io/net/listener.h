// Accepts connections on one address and hands them out.
//
// Threads  Start() and Close() on the given loop. Each accepted descriptor goes to the callback on
//          that loop; the callback may hand it to another loop.
// Limits   When the process runs out of descriptors, accepting pauses and is retried; it never
//          busy-loops.
#pragma once

#include <functional>
#include <memory>

#include "base/log.h"
#include "base/repeat_limit.h"
#include "io/net/address.h"
#include "io/net/loop.h"
#include "io/net/task.h"

namespace fathom {

class Listener {
 public:
  // Binds and listens at once, so that the caller gets "address in use" as an error.
  static Result<std::unique_ptr<Listener>> Bind(Loop& loop, const Address& address, Log& log);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The bound address; with a requested port of 0 it holds the port that the kernel chose.
  const Address& address() const { return address_; }

  void Start(std::function<void(int fd)> on_accept);
  // Stops accepting and frees the address.
  void Close();

 private:
  class AcceptOperation;

  Listener(Loop& loop, int fd, const Address& address, Log& log);
  // `open` outlives the listener, which may be destroyed before a pause ends.
  Task<void> AcceptForever(std::shared_ptr<const bool> open);

  Loop& loop_;
  int fd_;
  Source* source_;
  const Address address_;
  Log& log_;
  RepeatLimit refusals_;
  std::function<void(int fd)> on_accept_;
  std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace fathom
