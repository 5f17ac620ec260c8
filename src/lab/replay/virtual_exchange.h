// What do the replicas of a router tell each other, in virtual time?
//
// Their groups and guests are those of real routers (router/replicas); only the carrier is not.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lab/replay/time_queue.h"
#include "lab/replay/virtual_network.h"
#include "lab/replay/virtual_router.h"

namespace fathom {

struct VirtualExchangeOptions {
  VirtualNetworkOptions network;
  // What is told.
  bool loads = true;
  bool prompts = true;
};

class VirtualExchange {
 public:
  // The routers outlive it.
  VirtualExchange(const VirtualExchangeOptions& options, uint64_t seed,
                  std::span<VirtualRouter* const> routers);
  ~VirtualExchange();

  // When a message arrives or a replica wants to look whether it has something to tell.
  TimePoint next() const;
  void Advance(TimePoint now);
  // Whether the replica has heard something since the last call.
  bool TakeHeard(size_t replica);

  struct Traffic {
    uint64_t messages = 0;  // that were published
    uint64_t bytes = 0;     // theirs
    uint64_t received = 0;  // messages that were believed, by all
    uint64_t dropped = 0;   // messages that arrived and were not
  };
  Traffic traffic() const;

 private:
  struct Member;

  VirtualNetwork network_;
  TimePoint now_{};
  std::vector<std::unique_ptr<Member>> members_;
  TimeQueue ticks_;
};

}  // namespace fathom
