// One flow of events, wherever it comes from.
#pragma once

#include "fleet/feed_board.h"
#include "net/task.h"

namespace fathom {

class Stream {
 public:
  virtual ~Stream() = default;
  // Follows it until Stop(). The caller keeps the stream until then.
  virtual Task<void> Run() = 0;
  virtual void Stop() = 0;
  // Now and then: what waits too long is given up.
  virtual void Tick() = 0;
  // Whether somebody is at the other end.
  virtual bool connected() const = 0;
  // While nobody is: how far a plain connection gets.
  virtual void SetReach(FeedReach /*reach*/) {}
};

}  // namespace fathom
