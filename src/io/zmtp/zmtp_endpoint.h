// Where is a ZeroMQ socket connected to, or bound?
//
//   tcp://worker-1:5557, tcp://[::1]:5557, tcp://*:5557 (to bind), ipc:///run/events.sock
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "io/net/address.h"
#include "io/net/resolver.h"
#include "io/net/task.h"

namespace fathom {

struct ZmtpEndpoint {
  std::string host;  // without brackets; a path if `ipc`
  uint16_t port = 0;
  bool ipc = false;

  static Result<ZmtpEndpoint> Parse(std::string_view text);

  // The addresses to connect to.
  Task<Result<std::vector<Address>>> Resolve(Loop& loop, Resolver& resolver) const;
  // The addresses to bind, in the order in which to try them. Blocks while a name is looked up.
  Result<std::vector<Address>> ToBind() const;
};

}  // namespace fathom
