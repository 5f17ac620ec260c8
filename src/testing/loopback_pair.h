// Two ends of a TCP connection over the loopback, for tests. Non-blocking, owned by the caller.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "io/net/address.h"

namespace fathom {

struct LoopbackPair {
  int near;
  int far;
};

// A listening descriptor on a free port of the loopback.
inline int ListenOnLoopback(int backlog = 128) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const Address any = *Address::Numeric("127.0.0.1", 0);
  CHECK(fd >= 0 && ::bind(fd, any.get(), any.size()) == 0 && ::listen(fd, backlog) == 0);
  return fd;
}

inline Address BoundAddress(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) == 0);
  return Address::Of(reinterpret_cast<sockaddr*>(&storage), size);
}

inline LoopbackPair ConnectedPair() {
  const int listening = ListenOnLoopback();
  const Address to = BoundAddress(listening);
  const int near = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(near >= 0 && ::connect(near, to.get(), to.size()) == 0);
  const int far = ::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  CHECK(far >= 0 && ::fcntl(near, F_SETFL, O_NONBLOCK) == 0);
  ::close(listening);
  return {near, far};
}

// A port of the loopback without a listener.
inline Address ClosedPort() {
  const int fd = ListenOnLoopback();
  const Address address = BoundAddress(fd);
  ::close(fd);
  return address;
}

}  // namespace fathom
