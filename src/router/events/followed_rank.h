// One rank's numbered stream: the follower's decisions carried out on the index, the log and the
// replay socket.
//
// Snapshots  When the stream is joined, another router is asked first for what the rank holds
//            (router/events/snapshot_source.h). While another router is told, the rank's own events
//            wait: the export is cut into slices, and must be of one moment.
// Threads  The intake's loop.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/repeat_limit.h"
#include "io/net/task.h"
#include "io/net/wakeable_wait.h"
#include "router/events/intake_context.h"
#include "router/events/large_batch.h"
#include "router/events/rank_feed.h"
#include "router/events/stream_follower.h"
#include "router/events/tellable_rank.h"

namespace fathom {

// The sequence number and the payload of a message. In the stream and in both kinds of replay they
// are the last two frames.
struct NumberedPayload {
  uint64_t sequence;
  std::string_view payload;
};
constexpr uint64_t kEndOfReplay = ~uint64_t{0};
std::optional<NumberedPayload> ReadNumbered(const ZmqMessage& message);

class FollowedRank final : public TellableRank, private FollowerActions {
 public:
  // `replay` is an endpoint; empty: no replay.
  FollowedRank(IntakeContext& context, const StreamOwner& owner, uint32_t rank, std::string source,
               std::string replay);

  void Connected();
  // A message of the stream, and the repairs before and after it. The message must stay where it
  // is. Precondition: !exporting().
  Task<void> Feed(const ZmqMessage& message);
  // The message alone. Precondition: !repairing() && !applying() && !exporting(). While applying(),
  // the message must stay where it is.
  void Message(const ZmqMessage& message);
  // A large batch or a snapshot was begun: finish it with ApplyRest(), before anything else is fed.
  bool applying() const { return large_.has_value() || feed_.importing(); }
  Task<void> ApplyRest();
  bool stopped() const { return stopped_; }
  bool repairing() const { return asked_ != nullptr || follower_.repairing(); }
  // Awaits the answer of another router. Asks the replay socket and feeds its batches. Ends when
  // the follower needs no more of them.
  Task<void> Repair();
  // Ends Repair() and ApplyRest(). The rank leaves the index at once.
  void Stop();
  // The connection was closed for a fault of the peer.
  void Cut(ZmtpFault fault);
  // The connection ended by itself: perhaps its process did.
  void Lost() { context_.sizes.Doubt(*owner_.worker, context_.loop.now()); }

  void Tick();

  RankLabel label() const;
  // Whether another router could go on from what is known now.
  bool tellable() const;
  Task<Result<std::string>> Export(size_t most) override;
  // While it is made, nothing may be fed.
  bool exporting() const { return exporting_; }
  Task<void> AwaitExport();
  FeedStatus& status() { return feed_.status(); }
  const FeedStatus& status() const { return feed_.status(); }
  const Worker& worker() const { return *owner_.worker; }

 private:
  bool Apply(uint64_t sequence, std::string_view payload) override;
  void Reset(ResetCause cause, uint64_t lost) override;
  void AskReplay(uint64_t from) override { replay_from_ = from; }
  bool Adopt() override;
  void DropSnapshot() override;

  // The answer of another router.
  struct Asked {
    bool answered = false;
    std::shared_ptr<const HoldingSnapshot> snapshot;
    WakeableWait* wait = nullptr;
  };

  bool busy() const { return repairing() || applying() || exporting_; }
  bool becoming_tellable() const;
  void AskForSnapshot();
  Task<void> AwaitSnapshot();
  bool MayKeep(const HoldingSnapshot& snapshot) const;
  void ImportSome();
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
  bool large_live_ = false;                         // it came from the stream, not from a replay
  bool joined_ = false;                             // the stream was connected at least once
  std::shared_ptr<Asked> asked_;                    // null: no answer is awaited
  std::shared_ptr<const HoldingSnapshot> offered_;  // until a batch has decided on it
  TimePoint offered_at_{};
  size_t importing_bytes_ = 0;
  uint64_t importing_blocks_ = 0;
  bool exporting_ = false;
  ByteHolder kept_;  // batches that the follower keeps
  ZmtpClient* replaying_ = nullptr;
  bool stopped_ = false;
  std::map<std::string_view, RepeatLimit> limits_;  // by message text, which is a string literal
};

}  // namespace fathom
