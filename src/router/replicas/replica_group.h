// Who is in the group, and who hears what?
//
// The state machine of one replica, without sockets: bytes come in by Received(), time by Tick(),
// and bytes leave by the carrier. The same code runs in the router and in the simulation.
//
//   presence   told every kPresence, also when nothing changes, and soon after another replica has
//              asked who we are; a peer that was not heard for the timeout is forgotten, and so is
//              one that says goodbye
//   guests     hear the messages of peers (router/replicas/replica_guest.h)
//
// Convergence  Guests tell their whole state once per kPresence. When faults end (losses,
// partitions, restarts), all living replicas have each other as peers and the same view of each
// origin's state within the timeout + 2 kPresence + 2 round trips: a process that has died is
// forgotten after the timeout (or OriginGate::kHolds, if another one has its name), one that is not
// known is heard within kPresence, proves itself in one round trip, and tells everything within
// another kPresence.
//
// Threads  The replicas' loop.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/replicas/carrier.h"
#include "router/replicas/origin_gate.h"
#include "router/replicas/presence_echo.h"
#include "router/replicas/replica_guest.h"

namespace fathom {

struct ReplicaGroupOptions {
  ReplicaIdentity self;
  Duration timeout = std::chrono::seconds(5);
  uint64_t seed = 0;  // of the challenges; must not be predictable
};

struct ReplicaGroupCounts {
  uint64_t sent = 0;      // those that the carrier took
  uint64_t received = 0;  // those that are believed and understood
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;  // of all messages but our own
  std::array<uint64_t, kReplicaDrops> dropped{};
};

class ReplicaGroup final : public ReplicaVoice {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(5);
  static constexpr Duration kPresence = std::chrono::seconds(1);

  // `describe` returns what is said of this replica; the interval is the group's. `seal` is null in
  // an open group. All must outlive the group.
  ReplicaGroup(ReplicaGroupOptions options, const MessageSeal* seal, Carrier& carrier,
               std::function<ReplicaPresence()> describe);

  // Before the first Tick().
  void Invite(ReplicaGuest& guest) { guests_.push_back(&guest); }

  void Received(std::string_view bytes, TimePoint now);
  void Tick(TimePoint now);
  // What is said of this replica has changed, and cannot wait for its second.
  void PresentSoon() { hurry_ = true; }
  // The others forget this replica at once. From then on it is silent: an answer to a challenge
  // would bring it back. It still hears the others.
  void Goodbye();

  void Tell(ReplicaMessage::Content content) override;
  bool TellOne(const std::string& replica, ReplicaMessage::Content content) override;
  const ReplicaPeers& peers() const override { return peers_; }
  const std::string& id() const override { return options_.self.id; }

  const ReplicaGroupCounts& counts() const { return counts_; }
  // Times that two living processes had the same id (OriginGate::conflicts), or another process
  // speaks in our name.
  uint64_t conflicts() const { return gate_.conflicts(); }

 private:
  // Newcomers ask several at once: one presence is for all of them.
  static constexpr Duration kPresenceSoon = std::chrono::milliseconds(100);

  void Answer(const std::string& replica, ReplicaMessage::Content content);
  std::optional<std::string> Seal(ReplicaMessage::Content content);
  void Sent(bool taken, size_t bytes);
  void Drop(ReplicaDrop why) { ++counts_.dropped[static_cast<size_t>(why)]; }
  void Hear(const ReplicaMessage& message, TimePoint now);
  void TellPresence(TimePoint now);
  void Come(const std::string& origin, TimePoint now);
  void Gone(const std::string& origin, TimePoint now);

  const ReplicaGroupOptions options_;
  Carrier& carrier_;
  const std::function<ReplicaPresence()> describe_;
  OriginGate gate_;
  std::vector<ReplicaGuest*> guests_;
  ReplicaPeers peers_;
  PresenceEcho echo_;
  ReplicaGroupCounts counts_;
  std::optional<TimePoint> present_;  // told for the last time
  bool hurry_ = false;                // for the next one
  bool silent_ = false;               // after Goodbye()
};

}  // namespace fathom
