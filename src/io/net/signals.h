// Which signal has the operator sent?
#pragma once

#include "base/clock.h"

namespace fathom {

// Blocks the signals in every thread, so that only WaitForSignal() receives them. Call it before
// any thread is started.
void BlockSignals();
// The next of SIGINT, SIGTERM and SIGHUP; 0 if none came in time.
int WaitForSignal(Duration patience);

}  // namespace fathom
