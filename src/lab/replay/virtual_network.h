// How do replicas hear each other, in virtual time? Every message takes its time, and some are
// lost.
//
// Each copy of a message is late or lost by itself, so that one that was sent later may come first.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "router/replicas/carrier.h"

namespace fathom {

struct VirtualNetworkOptions {
  Duration delay{};     // on average
  double jitter = 0.5;  // of the delay, more or less, evenly
  double loss = 0;      // share of the messages
};

class VirtualNetwork {
 public:
  // `names` are those of the replicas.
  VirtualNetwork(const VirtualNetworkOptions& options, std::vector<std::string> names,
                 uint64_t seed);
  ~VirtualNetwork();

  // One for each replica, as long as the network.
  Carrier& carrier(size_t replica);

  // When the next message arrives; kNever: none is under way.
  TimePoint next() const { return under_way_.empty() ? kNever : under_way_.top().arrives; }
  // What is sent from now on leaves at this time.
  void SetNow(TimePoint now) { now_ = now; }
  // Hands over the messages that have arrived, also those that are sent meanwhile and are at once.
  void Deliver(TimePoint now);

 private:
  class Port;
  struct Message {
    TimePoint arrives;
    uint64_t number = 0;  // of all that were sent
    size_t to = 0;
    std::shared_ptr<const std::string> bytes;
    bool operator>(const Message& other) const {
      return arrives != other.arrives ? arrives > other.arrives : number > other.number;
    }
  };

  void Carry(size_t to, const std::shared_ptr<const std::string>& bytes);

  const VirtualNetworkOptions options_;
  const std::vector<std::string> names_;
  Random random_;
  TimePoint now_{};
  uint64_t sent_ = 0;
  std::vector<std::unique_ptr<Port>> ports_;
  std::priority_queue<Message, std::vector<Message>, std::greater<>> under_way_;
};

}  // namespace fathom
