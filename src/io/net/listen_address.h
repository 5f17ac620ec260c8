// Which address shall a server listen on, given a host's name or number?
//
// Threads  Before the loops run: a name is looked up by a call that can take seconds.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "io/net/address.h"

namespace fathom {

// Of a name with several addresses, the first. The error is the system's reason alone.
Result<Address> ListenAddress(const std::string& host, uint16_t port);

}  // namespace fathom
