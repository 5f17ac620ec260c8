// How does the router receive events of engines that connect to it? A SUB that is bound.
//
// All engines publish to the same port, so the topic of a message identifies the worker
// (router/events/topic_owner.h). The rank is in the batch. Sequences are checked per worker and
// rank. A gap can be repaired if the worker's entry has a kv_events_replay; messages of other
// engines do not wait for the repair.
//
// Threads  The intake's loop.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/repeat_limit.h"
#include "io/zmtp/zmtp_listener.h"
#include "router/events/followed_rank.h"
#include "router/events/intake_context.h"
#include "router/events/stream.h"
#include "router/events/topic_owner.h"

namespace fathom {

class BoundStream final : public Stream {
 public:
  static Result<std::shared_ptr<BoundStream>> Open(IntakeContext& context);

  // The workers whose events may arrive here.
  void SetOwners(std::vector<StreamOwner> owners);

  Task<void> Run() override;
  void Stop() override;
  void Tick() override;
  bool connected() const override { return listener_->connected() > 0; }
  std::shared_ptr<TellableRank> TellableOf(const RankLabel& rank) override;
  void ListTellable(std::vector<RankLabel>& ranks) override;

 private:
  struct Served {
    template <class... Args>
    explicit Served(Args&&... args) : rank(std::forward<Args>(args)...) {}
    FollowedRank rank;
    bool busy = false;  // a batch is being applied, or a gap repaired
  };

  BoundStream(IntakeContext& context, std::unique_ptr<ZmtpListener> listener)
      : context_(context), listener_(std::move(listener)) {}

  Task<void> Serve(ZmtpConnection& peer);
  Task<void> Handle(const ZmqMessage& message);
  Task<void> Feed(Served& served, const ZmqMessage& message);
  Task<std::optional<uint32_t>> RankIn(std::string_view payload);
  const StreamOwner* OwnerOf(std::string_view topic) const;
  std::shared_ptr<Served> Find(const StreamOwner& owner, uint32_t number);
  void SayStray();
  void Refused(ZmtpRefusal why, const Address& from, ZmtpFault fault);

  IntakeContext& context_;
  const std::unique_ptr<ZmtpListener> listener_;
  std::vector<StreamOwner> owners_;
  std::vector<TopicClaim> claims_;  // of the owners, in the same order
  std::map<std::pair<WorkerId, uint32_t>, std::shared_ptr<Served>> ranks_;
  RepeatLimit stray_lines_;
  RepeatLimit refusal_lines_;
  bool stopped_ = false;
};

}  // namespace fathom
