// Follows one rank's publisher: a SUB socket that we connect.
//
// Threads  The intake's loop. A running stream keeps itself alive until Stop() has taken effect.
#pragma once

#include <functional>
#include <memory>

#include "events/event_source.h"
#include "events/followed_rank.h"
#include "events/intake_context.h"
#include "events/stream.h"
#include "net/task.h"

namespace fathom {

class ZmqStream final : public Stream {
 public:
  // An error if the endpoint is none.
  static Result<std::shared_ptr<ZmqStream>> Open(IntakeContext& context, const StreamOwner& owner,
                                                 const EventSource& source);

  Task<void> Run() override;
  void Stop() override;
  void Tick() override { rank_.Tick(); }
  bool connected() const override { return up_; }
  void SetReach(FeedReach reach) override {
    rank_.status().reach.store(reach, std::memory_order_relaxed);
  }

 private:
  ZmqStream(IntakeContext& context, const StreamOwner& owner, const EventSource& source,
            std::unique_ptr<ZmqSocket> socket);

  Task<bool> Settle();

  std::unique_ptr<ZmqSocket> socket_;
  FollowedRank rank_;
  uint64_t connects_seen_ = 0;
  bool up_ = false;
  bool stopped_ = false;
};

}  // namespace fathom
