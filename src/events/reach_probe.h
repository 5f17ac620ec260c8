// Can the port that events should come from be reached?
//
// A ZeroMQ socket that does not connect does not say why. A plain connection does: nobody listens,
// no answer, no such host, or somebody who is no publisher.
//
// Threads  The intake's loop.
#pragma once

#include <string>

#include "events/intake_context.h"
#include "net/task.h"

namespace fathom {

// kUnknown for what has no port, such as ipc://.
Task<FeedReach> ProbeReach(IntakeContext& context, std::string endpoint);

}  // namespace fathom
