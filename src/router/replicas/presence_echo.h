// Do the others hear this replica, and how long does a message take to them and back?
//
// Each replica says in its presence which presence of the others it has heard last, and how long
// ago. So everybody learns whether its own word arrives, and the time there and back without
// comparing clocks.
//
// Threads  One.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "router/replicas/origin_gate.h"
#include "router/replicas/replica_guest.h"

namespace fathom {

class PresenceEcho {
 public:
  // Our own presence leaves as message `number`.
  void Told(uint64_t number, TimePoint now);

  // What we say of the others: those of whom a presence was heard.
  static std::vector<ReplicaHearing> Hearings(const ReplicaPeers& peers, TimePoint now);

  // A peer's presence has arrived: notes in `peer` what it says of us.
  void Heard(const ReplicaIdentity& self, const ReplicaMessage& message,
             const ReplicaPresence& presence, ReplicaPeer& peer, TimePoint now) const;

 private:
  struct Sent {
    uint64_t number = 0;
    TimePoint when{};
  };
  // A peer that echoes one that is older has no round trip that is worth knowing.
  static constexpr size_t kRemembered = 32;

  std::optional<TimePoint> WhenTold(uint64_t number) const;

  std::array<Sent, kRemembered> sent_;
  size_t next_ = 0;
};

}  // namespace fathom
