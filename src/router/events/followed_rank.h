// One rank's numbered stream: the follower's decisions carried out on the index, the log and the
// replay socket.
//
// Threads  The intake's loop.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/repeat_limit.h"
#include "io/net/task.h"
#include "router/events/intake_context.h"
#include "router/events/large_batch.h"
#include "router/events/rank_feed.h"
#include "router/events/stream_follower.h"

namespace fathom {

// The sequence number and the payload of a message. In the stream and in both kinds of replay they
// are the last two frames.
struct NumberedPayload {
  uint64_t sequence;
  std::string_view payload;
};
constexpr uint64_t kEndOfReplay = ~uint64_t{0};
std::optional<NumberedPayload> ReadNumbered(const ZmqMessage& message);

class FollowedRank final : private FollowerActions {
 public:
  // `replay` is an endpoint; empty: no replay.
  FollowedRank(IntakeContext& context, const StreamOwner& owner, uint32_t rank, std::string source,
               std::string replay);

  void Connected();
  // A message of the stream. Precondition: !repairing() && !applying(). While applying(), the
  // message must stay where it is.
  void Message(const ZmqMessage& message);
  // A large batch was begun: finish it with ApplyRest(), before anything else is fed.
  bool applying() const { return large_.has_value(); }
  Task<void> ApplyRest();
  bool stopped() const { return stopped_; }
  bool repairing() const { return follower_.repairing(); }
  // Asks the replay socket and feeds its batches. Ends when the follower needs no more of them.
  Task<void> Repair();
  // Ends Repair() and ApplyRest(). The rank leaves the index at once.
  void Stop();
  // The connection was closed for a fault of the peer.
  void Cut(ZmtpFault fault);
  // The connection ended by itself: perhaps its process did.
  void Lost() { context_.sizes.Doubt(*owner_.worker, context_.loop.now()); }

  void Tick() { feed_.Tick(context_.loop.now()); }
  FeedStatus& status() { return feed_.status(); }
  const Worker& worker() const { return *owner_.worker; }

 private:
  bool Apply(uint64_t sequence, std::string_view payload) override;
  void Reset(ResetCause cause, uint64_t lost) override;
  void AskReplay(uint64_t from) override { replay_from_ = from; }

  void Live(const NumberedPayload& batch);
  void ApplyLarge();
  void Applied(uint64_t sequence, const EventBatch& batch);
  void SayUnreadable(std::string_view problem);
  void Following(void (StreamFollower::*step)());
  void Stamp(double timestamp, bool live);
  void CopyCounts();
  std::optional<uint64_t> MaySay(std::string_view what);
  void SayRestarted();
  void Complain(std::string_view what, std::string_view detail, std::string_view fix);
  Task<bool> ReceiveReplay(ZmtpClient& client);

  IntakeContext& context_;
  const StreamOwner owner_;
  std::optional<CatchUp::Share> catching_up_;  // until the first replay has ended
  const std::string replay_;
  RankFeed feed_;
  StreamFollower follower_;
  uint64_t replay_from_ = 0;
  bool live_ = false;  // the batch that is being applied came from the stream, not from a replay
  std::optional<LargeBatch> large_;
  bool large_live_ = false;  // it came from the stream, not from a replay
  ByteHolder kept_;          // batches that the follower keeps
  ZmtpClient* replaying_ = nullptr;
  bool stopped_ = false;
  std::map<std::string_view, RepeatLimit> limits_;  // by message text, which is a string literal
};

}  // namespace fathom
