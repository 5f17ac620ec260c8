// How do replicas reach each other through NATS?
//
// Core publish/subscribe, on two subjects of each replica:
//
//   fathom.GROUP.all      what is for all
//   fathom.GROUP.to.ID    what is for one
//
// A '.' in a name is '~' in its subject: NATS separates by dots, and no name has a '~'. So a server
// permits a group with "fathom.GROUP.>".
//
// Threads  The replicas' loop.
// Ending   As of NatsClient: after Stop() the loop has to run a little longer.
#pragma once

#include <string>
#include <string_view>

#include "base/log.h"
#include "base/repeat_limit.h"
#include "io/nats/nats_client.h"
#include "router/replicas/carrier.h"
#include "router/replicas/replica_message.h"

namespace fathom {

class NatsCarrier final : public Carrier {
 public:
  // A sealed message and some.
  static constexpr size_t kLongestMessage = ReplicaMessage::kMostBytes + 64;

  // `name` and `longest_message` of the options are set here. References must outlive it and
  // what ends after it.
  NatsCarrier(Loop& loop, Resolver& resolver, Log& log, std::string_view group, std::string_view id,
              NatsOptions options);

  void Start(OnMessage on_message) override;
  void Stop() override;
  bool Publish(std::string_view message) override;
  bool Send(std::string_view replica, std::string_view message) override;
  Status status() const override;

 private:
  std::string SubjectOf(std::string_view replica) const;
  void Changed(bool up, const std::string& problem);

  Loop& loop_;
  Log& log_;
  const std::string prefix_;  // "fathom.GROUP."
  const std::string servers_;
  NatsClient client_;
  RepeatLimit problem_lines_;
  bool logged_down_ = false;
};

}  // namespace fathom
