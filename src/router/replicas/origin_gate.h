// Whose message is this, and may it be believed?
//
// A message counts if it is sealed with the group's key, if its origin has proven to be there now,
// and if none with its number has come before. Then it cannot be forged, nor kept and sent again:
//
//   another process   A message of an incarnation that is not known is not believed. The origin is
//                     challenged with a number that nobody could know before, and believed from its
//                     proof on.
//   the same process  Numbers increase. Of the last kWindow ones it is known which have come, so
//                     that messages may overtake each other; older ones are dropped.
//
// No clock is compared with another machine's.
//
// Threads  One.
// Memory   At most kMostOrigins, those that were heard last. Before the proof an origin costs one
//          entry of a table of kMostStrangers.
#pragma once

#include <bitset>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "io/net/message_seal.h"
#include "router/replicas/replica_message.h"

namespace fathom {

// Why a message was dropped; the labels of fathom_replica_messages_dropped_total.
enum class ReplicaDrop : uint8_t {
  kKey,        // not sealed with the group's key
  kMalformed,  // sealed, and not a message
  kVersion,    // of another major version
  kGroup,      // of another group
  kOld,        // it has come before, or too late
  kUnproven,   // its origin has not proven itself yet
  kUnknown,    // of a kind that a newer version has
  kOrigins,    // too many origins
};
constexpr size_t kReplicaDrops = 8;
std::string_view Name(ReplicaDrop drop);

struct ReplicaIdentity {
  std::string group;
  std::string id;
  uint64_t incarnation = 0;  // random
};

class OriginGate {
 public:
  static constexpr size_t kMostOrigins = 64;
  static constexpr size_t kMostStrangers = 64;
  static constexpr size_t kWindow = 1024;
  static constexpr Duration kChallengeEvery = std::chrono::milliseconds(250);

  // `send` broadcasts a content of our own. `seal` is null in an open group.
  using Send = std::function<void(ReplicaMessage::Content content)>;
  OriginGate(ReplicaIdentity self, const MessageSeal* seal, uint64_t seed, Send send)
      : self_(std::move(self)), seal_(seal), random_(seed), send_(std::move(send)) {}

  // The message as it goes to the carrier.
  std::string Seal(ReplicaMessage::Content content);

  // nullopt: our own message, or one that the gate itself has answered.
  std::expected<std::optional<ReplicaMessage>, ReplicaDrop> Open(std::string_view bytes,
                                                                 TimePoint now);

  // An origin that was not heard for this long is forgotten. `gone` is called for each, also when
  // another incarnation takes its place.
  using Gone = std::function<void(const std::string& origin)>;
  void OnGone(Gone gone) { gone_ = std::move(gone); }
  void Expire(TimePoint now, Duration timeout);

  struct Origin {
    uint64_t incarnation = 0;
    uint64_t newest = 0;  // number
    TimePoint heard{};
    uint32_t minor = 0;
    std::bitset<kWindow> seen;
  };
  const std::map<std::string, Origin, std::less<>>& origins() const { return origins_; }
  // Times that another process took the name of one that was heard in the same second: two replicas
  // have the same id.
  uint64_t conflicts() const { return conflicts_; }

 private:
  struct Stranger {
    uint64_t incarnation = 0;
    uint64_t nonce = 0;
    TimePoint challenged{};
  };

  bool Admit(const ReplicaMessage& message, TimePoint now);
  void ChallengeOrigin(const ReplicaMessage& message, TimePoint now);
  bool TakeProof(const ReplicaMessage& message, const Proof& proof, TimePoint now);
  static bool Count(Origin& origin, uint64_t number);

  const ReplicaIdentity self_;
  const MessageSeal* const seal_;
  Random random_;
  const Send send_;
  Gone gone_;
  uint64_t number_ = 0;
  uint64_t conflicts_ = 0;
  std::map<std::string, Origin, std::less<>> origins_;
  std::map<std::string, Stranger, std::less<>> strangers_;
};

}  // namespace fathom
