// Ends a chain of waits from outside: the lookup of a name, then the attempts to connect.
//
//   Cancellation cancellation;
//   auto resolving = resolver.Resolve(loop, host, port, deadline, &cancellation);
//   ...
//   cancellation.Cancel();     // from another coroutine of the same loop
//
// What waits now ends with kCancelled, soon but not inside the call; what would wait later ends at
// once.
//
// Threads  One loop.
#pragma once

#include "io/net/wakeable_wait.h"

namespace fathom {

class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void Cancel() {
    cancelled_ = true;
    if (waiting_ != nullptr) waiting_->Wake();
  }
  bool cancelled() const { return cancelled_; }

  // While it exists, Cancel() wakes this wait; the coroutine then looks at cancelled(). Without a
  // cancellation it does nothing.
  class Scope {
   public:
    Scope(Cancellation* cancellation, WakeableWait& wait) : cancellation_(cancellation) {
      if (cancellation_ != nullptr) cancellation_->waiting_ = &wait;
    }
    ~Scope() {
      if (cancellation_ != nullptr) cancellation_->waiting_ = nullptr;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Cancellation* const cancellation_;
  };

 private:
  WakeableWait* waiting_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace fathom
