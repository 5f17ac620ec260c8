// One stream of events, from any kind of source.
#pragma once

#include <memory>
#include <vector>

#include "engine/rank_label.h"
#include "io/net/task.h"
#include "router/events/poll_turn.h"
#include "router/fleet/feed_board.h"

namespace fathom {

class TellableRank;

class Stream {
 public:
  virtual ~Stream() = default;
  // Runs until Stop(). The caller keeps the stream alive until then.
  virtual Task<void> Run() = 0;
  virtual void Stop() = 0;
  // Call periodically: drops entries that have waited too long.
  virtual void Tick() = 0;
  // Whether a peer is connected.
  virtual bool connected() const = 0;
  // While no peer is connected: the result of a plain TCP connection.
  virtual void SetReach(FeedReach /*reach*/) {}
  // A rank that it follows; null: it does not. Keeps the stream alive.
  virtual std::shared_ptr<TellableRank> TellableOf(const RankLabel& /*rank*/) { return nullptr; }
  // Appends those of these ranks of which a snapshot could be made now.
  virtual void ListTellable(std::vector<RankLabel>& /*ranks*/) {}
  // What another router has polled from the stream's engine.
  virtual void Heard(PolledWord /*word*/) {}
};

}  // namespace fathom
