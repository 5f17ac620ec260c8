// Whose message is this, and may it be believed?
//
// A message counts if it is sealed with the group's key, if its origin has proven to be there now,
// and if none with its number has come before. Then it cannot be forged, nor kept and sent again:
//
//   another process   A message of an incarnation that is not known is not believed. The origin is
//                     challenged with a number that was never used before, and believed from its
//                     proof on, if that comes within kChallengeHeld. Messages before the proof do
//                     not count.
//   the same process  Numbers increase. Of the last kWindow ones it is known which have come, so
//                     that messages may overtake each other; older ones are dropped.
//                     Who can hold messages back on the way could let them in one by one, and keep
//                     a dead origin's last state: so a proof holds for 2 kProofHolds, and is asked
//                     for again after kProofHolds.
//   one name, two     The process that has a name keeps it while it is heard: another one that
//   processes         proves itself gets the name when the first was silent for kHolds, or has
//                     said goodbye. So two living processes of one id do not push each other out
//                     in turns; they are counted as a conflict.
//   goodbye           A presence without an interval. The origin is forgotten at once; messages of
//                     it that come later are those of a stranger.
//
// No clock is compared with another machine's.
//
// Cost     of a message that is not sealed: one HMAC of at most ReplicaMessage::kMostBytes. Of one
//          that was kept and is sent again: at most one challenge and one proof, and of these at
//          most kMostStrangers per kChallengeEvery, and in half of that time one proof for each
//          process and kProofs for all, so that the gate is no amplifier. A stranger keeps its
//          entry for kChallengeHeld at least: a flood of old messages delays a newcomer, but does
//          not take its challenge away.
// Threads  One.
// Memory   At most kMostOrigins. Before the proof an origin costs one entry of a table of
//          kMostStrangers.
#pragma once

#include <bitset>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "io/net/message_seal.h"
#include "router/replicas/replica_message.h"

namespace fathom {

// Why a message was dropped; the labels of fathom_replica_messages_dropped_total.
enum class ReplicaDrop : uint8_t {
  kKey,        // not sealed with the group's key
  kMalformed,  // not a message, or longer than one may be
  kVersion,    // of another major version
  kGroup,      // of another group
  kOld,        // it has come before, or too late
  kUnproven,   // its origin has not proven itself yet
  kUnknown,    // of a kind that a newer version has
  kOrigins,    // too many origins
  kTooLong,    // one of our own that does not fit into a message; it was not sent
};
constexpr size_t kReplicaDrops = 9;
std::string_view Name(ReplicaDrop drop);

struct ReplicaIdentity {
  std::string group;
  std::string id;
  uint64_t incarnation = 0;  // random
};

class OriginGate {
 public:
  static constexpr size_t kMostOrigins = 64;
  static constexpr size_t kMostStrangers = 256;
  static constexpr size_t kWindow = 4096;
  static constexpr size_t kProofs = 256;
  static constexpr Duration kChallengeEvery = std::chrono::milliseconds(500);
  static constexpr Duration kChallengeHeld = std::chrono::seconds(4);
  static constexpr Duration kHolds = std::chrono::seconds(2);
  static constexpr Duration kProofHolds = std::chrono::seconds(30);

  // `send` sends a content of our own to one replica. `seal` is null in an open group. `seed` must
  // be another one for each process, or old proofs would count again.
  using Send = std::function<void(const std::string& to, ReplicaMessage::Content content)>;
  OriginGate(ReplicaIdentity self, const MessageSeal* seal, uint64_t seed, Send send)
      : self_(std::move(self)), seal_(seal), random_(seed), send_(std::move(send)) {}

  // The message as it goes to the carrier; nullopt: it is longer than a message may be.
  std::optional<std::string> Seal(ReplicaMessage::Content content);

  struct Opened {
    bool own = false;                       // it is our own that has come back
    std::optional<ReplicaMessage> message;  // nullopt: our own, or the gate itself has answered
  };
  std::expected<Opened, ReplicaDrop> Open(std::string_view bytes, TimePoint now);

  struct Origin {
    uint64_t incarnation = 0;
    uint64_t newest = 0;  // number
    TimePoint heard{};    // the newest
    TimePoint proven{};
    TimePoint asked{};   // for a proof
    uint64_t nonce = 0;  // of that
    uint32_t minor = 0;
    bool rival = false;  // another process has proven itself in its name since it was heard
    std::bitset<kWindow> seen;
  };
  const std::map<std::string, Origin, std::less<>>& origins() const { return origins_; }

  // Called within Open() and Expire(): `come` after the origin is among origins(), `gone` after it
  // is no longer there. When another incarnation takes a name, first `gone`, then `come`.
  using Change = std::function<void(const std::string& origin, TimePoint now)>;
  void OnChange(Change come, Change gone) {
    come_ = std::move(come);
    gone_ = std::move(gone);
  }
  // An origin that was not heard for longer than `timeout` is forgotten, and one that does not
  // prove itself again.
  void Expire(TimePoint now, Duration timeout);

  // The number of our last message.
  uint64_t told() const { return number_; }
  // Times that two living processes were seen to have the same id, ours or that of an origin.
  uint64_t conflicts() const { return conflicts_; }

 private:
  struct Stranger {
    uint64_t nonce = 0;
    TimePoint first{};
    TimePoint asked{};  // for the last time
  };
  // Name and incarnation: messages of a dead process of the same name do not disturb the challenge
  // of the living one.
  using Process = std::pair<std::string, uint64_t>;
  using Strangers = std::map<Process, Stranger>;

  std::expected<Opened, ReplicaDrop> Sort(ReplicaMessage message, TimePoint now);
  std::expected<Opened, ReplicaDrop> Meet(const ReplicaMessage& message, TimePoint now);
  void NoteLife(Origin& origin, const ReplicaMessage& message, TimePoint now);
  bool Known(const ReplicaMessage& message) const;
  bool MayProve(const Process& process, TimePoint now);
  void Ask(const ReplicaMessage& message, TimePoint now);
  Strangers::iterator Remember(Process process, TimePoint now);
  void TakeProof(const ReplicaMessage& message, const Proof& proof, TimePoint now);
  void Refuse(Stranger& stranger, TimePoint now);
  void Admit(const ReplicaMessage& message, TimePoint now);
  void Forget(std::string_view origin, TimePoint now);
  static bool Count(Origin& origin, uint64_t number);

  const ReplicaIdentity self_;
  const MessageSeal* const seal_;
  Random random_;
  const Send send_;
  Change come_ = [](const std::string&, TimePoint) {};
  Change gone_ = [](const std::string&, TimePoint) {};
  uint64_t number_ = 0;
  uint64_t conflicts_ = 0;
  std::set<Process> proven_to_;  // strangers, since proofs_since_
  TimePoint proofs_since_{};
  std::map<std::string, Origin, std::less<>> origins_;
  Strangers strangers_;
};

}  // namespace fathom
