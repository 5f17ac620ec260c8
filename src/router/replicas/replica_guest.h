// What does a part of the router need to talk to its counterparts in the other replicas?
//
// The group (router/replicas/replica_group.h) knows who is there and whose word may be believed.
// Its guests know what to say: one shares loads, one sent prompts, one sessions, one the index. A
// guest hears every message of the others that is believed, and leaves those that are not its own.
//
// Threads  All calls on the replicas' loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/clock.h"
#include "router/replicas/replica_message.h"

namespace fathom {

// Another replica that is heard.
struct ReplicaPeer {
  uint64_t incarnation = 0;
  uint32_t minor = 0;
  TimePoint heard{};
  ReplicaPresence presence{};    // its last
  uint64_t presence_number = 0;  // of that message; 0: none was heard yet
  TimePoint presence_heard{};
  bool hears_us = false;  // as it says
  TimePoint heard_us{};   // when it last said so; before that: when it joined
  Duration round_trip{};  // of a message to it and back; 0: not known
};
// By id.
using ReplicaPeers = std::map<std::string, ReplicaPeer, std::less<>>;

// How a guest speaks. Best effort: what is told may be lost, come twice or in another order.
class ReplicaVoice {
 public:
  virtual ~ReplicaVoice() = default;
  // To all others. `content` must fit into a message.
  virtual void Tell(ReplicaMessage::Content content) = 0;
  // To one. Others may hear it too. False: it did not leave.
  virtual bool TellOne(const std::string& replica, ReplicaMessage::Content content) = 0;
  virtual const ReplicaPeers& peers() const = 0;
  // Its own id.
  virtual const std::string& id() const = 0;
};

class ReplicaGuest {
 public:
  virtual ~ReplicaGuest() = default;
  // A message of another replica that is among the peers.
  virtual void Heard(const ReplicaMessage& message, TimePoint now) = 0;
  // Every ReplicaGroup::kTick.
  virtual void Tick(TimePoint now) = 0;
  // An origin is heard from now on, as a new process of that name; or no longer. Between the two it
  // is among the peers.
  virtual void Joined(const std::string& origin, TimePoint now) = 0;
  virtual void Left(const std::string& origin, TimePoint now) = 0;
};

}  // namespace fathom
