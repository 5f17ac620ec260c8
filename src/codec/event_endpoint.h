// Is this a ZeroMQ endpoint where an engine can publish its KV events?
//
// libzmq has more transports than engines use, and some of them reach into this process or its
// machine. Only tcp://HOST:PORT, where HOST may be a wildcard, and ipc://PATH are accepted.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace fathom {

struct TcpEventEndpoint {
  std::string_view host;  // as written: *, a name, an address, IPv6 in brackets
  uint16_t port = 0;

  // nullopt if it is not of the form tcp://HOST:PORT.
  static std::optional<TcpEventEndpoint> Parse(std::string_view endpoint);
};

// Blames the caller. The error shows the endpoint without control characters.
Result<void> CheckEventEndpoint(std::string_view endpoint);

}  // namespace fathom
