// Engines that connect to the router: one SUB socket that we bind.
//
// All of them publish into it, so a message says by its topic whose it is: a worker's
// kv_events_topic, or a topic with the worker's host:port in it. Its rank is in the batch.
// Sequences are checked per worker and rank; a gap can be repaired where the worker's entry has a
// kv_events_replay, and the other engines' messages wait meanwhile.
//
// Threads  The intake's loop.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "events/followed_rank.h"
#include "events/intake_context.h"
#include "events/stream.h"

namespace fathom {

class BoundStream final : public Stream {
 public:
  static Result<std::shared_ptr<BoundStream>> Open(IntakeContext& context);

  // The workers whose events may come here.
  void SetOwners(std::vector<StreamOwner> owners);

  Task<void> Run() override;
  void Stop() override;
  void Tick() override;
  bool connected() const override { return socket_->connects() > socket_->disconnects(); }

 private:
  BoundStream(IntakeContext& context, std::unique_ptr<ZmqSocket> socket)
      : context_(context), socket_(std::move(socket)) {}

  const StreamOwner* OwnerOf(std::string_view topic) const;
  FollowedRank* RankOf(const StreamOwner& owner, const NumberedPayload& batch);
  Task<void> Handle(const ZmqMessage& message);

  IntakeContext& context_;
  const std::unique_ptr<ZmqSocket> socket_;
  std::vector<StreamOwner> owners_;
  std::map<std::pair<WorkerId, uint32_t>, std::unique_ptr<FollowedRank>> ranks_;
  FollowedRank* repairing_ = nullptr;
  uint64_t strays_ = 0;
  bool stopped_ = false;
};

}  // namespace fathom
