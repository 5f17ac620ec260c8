// Follows one rank's publisher: a SUB that connects to it.
//
// Threads  The intake's loop. A running stream keeps itself alive until Stop() has taken effect.
#pragma once

#include <memory>

#include "io/net/task.h"
#include "io/zmtp/zmtp_client.h"
#include "router/events/event_source.h"
#include "router/events/followed_rank.h"
#include "router/events/intake_context.h"
#include "router/events/stream.h"

namespace fathom {

class ZmqStream final : public Stream, public std::enable_shared_from_this<ZmqStream> {
 public:
  // Fails if the endpoint is invalid.
  static Result<std::shared_ptr<ZmqStream>> Open(IntakeContext& context, const StreamOwner& owner,
                                                 const EventSource& source);

  Task<void> Run() override;
  void Stop() override;
  void Tick() override { rank_.Tick(); }
  bool connected() const override { return client_->connected(); }
  void SetReach(FeedReach reach) override {
    rank_.status().reach.store(reach, std::memory_order_relaxed);
  }
  std::shared_ptr<TellableRank> TellableOf(const RankLabel& rank) override;
  void ListTellable(std::vector<RankLabel>& ranks) override;

 private:
  ZmqStream(IntakeContext& context, const StreamOwner& owner, const EventSource& source,
            std::unique_ptr<ZmtpClient> client)
      : client_(std::move(client)),
        rank_(context, owner, source.rank, source.endpoint, source.replay) {}

  Task<void> Take(ZmtpNews news);

  const std::unique_ptr<ZmtpClient> client_;
  FollowedRank rank_;
  bool stopped_ = false;
};

}  // namespace fathom
