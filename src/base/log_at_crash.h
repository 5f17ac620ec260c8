// What were the last records? A process that dies of a signal first writes those that its log still
// holds.
//
// There is one per process, made by main, because signal handlers are the process's. Sanitizers
// have handlers of their own, which are left in place.
#pragma once

#include "base/log_writer.h"

namespace fathom {

class LogAtCrash {
 public:
  explicit LogAtCrash(const LogWriter& writer);
  ~LogAtCrash();
  LogAtCrash(const LogAtCrash&) = delete;
  LogAtCrash& operator=(const LogAtCrash&) = delete;
};

}  // namespace fathom
