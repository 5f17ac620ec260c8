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

#include "events/intake_context.h"
#include "events/rank_feed.h"
#include "events/stream_follower.h"
#include "net/task.h"

namespace fathom {

// The sequence number and the payload of a message, of either kind of replay or of the stream: they
// are its last two frames.
struct NumberedPayload {
  uint64_t sequence;
  std::string_view payload;
};
constexpr uint64_t kEndOfReplay = ~uint64_t{0};
std::optional<NumberedPayload> ReadNumbered(const ZmqMessage& message);

class FollowedRank final : private FollowerActions {
 public:
  // `replay` is an endpoint; empty: there is none.
  FollowedRank(IntakeContext& context, const StreamOwner& owner, uint32_t rank, std::string source,
               std::string replay);

  void Connected() { Following(&StreamFollower::Connected); }
  // A message of the stream. It must not be repairing().
  void Message(const ZmqMessage& message);
  void Live(const NumberedPayload& batch);
  bool repairing() const { return follower_.repairing(); }
  // Asks the replay socket and feeds what it says. Ends when the follower has what it wanted.
  Task<void> Repair();
  // Ends a Repair() that waits.
  void Stop();

  void Tick() { feed_.Tick(context_.loop.now()); }
  FeedStatus& status() { return feed_.status(); }
  const Worker& worker() const { return *owner_.worker; }

 private:
  bool Apply(uint64_t sequence, std::string_view payload) override;
  void Reset(ResetCause cause, uint64_t lost) override;
  void AskReplay(uint64_t from) override { replay_from_ = from; }

  void Following(void (StreamFollower::*step)());
  void Stamp(double timestamp);
  void CopyCounts();
  std::optional<uint64_t> MaySay(std::string_view what);
  void SayRestarted();
  void Complain(std::string_view what, std::string_view detail, std::string_view fix);
  Task<bool> ReceiveReplay(ZmqSocket& socket);

  IntakeContext& context_;
  const StreamOwner owner_;
  const std::string replay_;
  RankFeed feed_;
  StreamFollower follower_;
  uint64_t replay_from_ = 0;
  bool live_ = false;  // what is applied has just come from the stream
  ZmqSocket* replaying_ = nullptr;
  bool stopped_ = false;
  // One line now and then about each kind of problem; what is not said is counted.
  struct Quiet {
    TimePoint until{};
    uint64_t unsaid = 0;
  };
  std::map<std::string_view, Quiet> quiet_;  // by what is said, which is never made up
};

}  // namespace fathom
