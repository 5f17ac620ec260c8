// Is the port of an event publisher reachable?
//
// A ZeroMQ socket that does not connect gives no reason. A plain TCP connection does: connection
// refused, timeout, unknown host, or a peer that is not a ZeroMQ publisher.
//
// Threads  The intake's loop.
#pragma once

#include <string>

#include "io/net/task.h"
#include "router/events/intake_context.h"

namespace fathom {

// kUnknown for endpoints without a port, such as ipc://.
Task<FeedReach> ProbeReach(IntakeContext& context, std::string endpoint);

}  // namespace fathom
