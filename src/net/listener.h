// Accepts connections on one address and hands them out.
//
// Threads  Start() and Close() on the loop that was given. Each accepted descriptor goes to the
//          callback on that loop; giving it to another loop is the callback's business.
// Limits   When the process runs out of descriptors, accepting pauses and is retried; it never
// spins.
#pragma once

#include <functional>
#include <memory>

#include "base/log.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/task.h"

namespace fathom {

class Listener {
 public:
  // Binds and listens at once, so that "address in use" is an error of the caller's.
  static Result<std::unique_ptr<Listener>> Bind(Loop& loop, const Address& address, Log& log);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // What it is bound to; the port is the real one if 0 was asked for.
  const Address& address() const { return address_; }

  void Start(std::function<void(int fd)> on_accept);
  // Stops accepting and frees the address.
  void Close();

 private:
  class AcceptOperation;

  Listener(Loop& loop, int fd, const Address& address, Log& log);
  // `open` outlives the listener, which may be gone when a pause is over.
  Task<void> AcceptForever(std::shared_ptr<const bool> open);

  Loop& loop_;
  int fd_;
  Source* source_;
  const Address address_;
  Log& log_;
  std::function<void(int fd)> on_accept_;
  std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace fathom
