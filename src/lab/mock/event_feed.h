// What does a mock engine tell about its caches, where, and with which faults?
//
// One outlet per rank: a ZeroMQ publisher, or a queue that is polled. Batches go to it in order,
// some of them late, lost or not at all, as the options say.
//
// Threads  One loop. May be created and destroyed while it does not run.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/net/loop.h"
#include "io/net/zmq.h"
#include "lab/mock/event_publisher.h"
#include "lab/mock/event_queue.h"
#include "lab/mock/event_wire.h"
#include "lab/mock/mock_options.h"

namespace fathom {

class EventFeed {
 public:
  static Result<std::unique_ptr<EventFeed>> Create(Loop& loop, const MockOptions& options);
  ~EventFeed();

  // On the loop, once it runs.
  void Start();

  // What a step has done to the cache of a rank. True: the rank restarts now; its cache is to be
  // emptied without a word.
  bool Publish(size_t rank, const std::vector<KvEvent>& events);

  // The faults of these, from now on. What is late and would not be any more leaves at once.
  void Adopt(const MockOptions& options);

  bool polled() const { return wire_.polled(); }
  const KvEventOptions& options() const { return options_; }
  // Of a feed that is not polled. Port 0: none.
  const EventPlaces& places(size_t rank) const { return publishers_[rank]->places(); }
  uint16_t port(size_t rank) const;
  uint16_t replay_port(size_t rank) const;
  // The events that nobody has fetched yet, as JSON, and they are gone.
  std::string Poll();

 private:
  struct Late {
    TimePoint due;
    std::vector<KvEvent> batch;
    BatchFate fate;
    bool restart;  // instead
  };
  struct Rank : Timer {
    Rank(EventFeed& f, EventOutlet& o) : Timer(&OnFire), feed(f), outlet(o) {}
    static void OnFire(Timer& timer) {
      Rank& rank = static_cast<Rank&>(timer);
      rank.feed.Flush(rank);
    }
    EventFeed& feed;
    EventOutlet& outlet;
    uint64_t batches = 0;
    std::deque<Late> late;
  };

  EventFeed(Loop& loop, const MockOptions& options, const EventWire& wire);
  void OpenQueues(const MockOptions& options);
  Result<void> OpenPublishers(size_t ranks);
  Result<void> OpenConsecutive(size_t ranks);
  EventPlaces PlacesFor(size_t rank) const;
  BatchFate FateOf(uint64_t number) const;
  std::vector<KvEvent> Told(const std::vector<KvEvent>& batch) const;
  void Flush(Rank& rank);

  Loop& loop_;
  KvEventOptions options_;  // constant but for the faults
  const EventWire wire_;
  ZmqContext context_;
  // Of the first rank, where the system was of no help; 0: its choice.
  uint64_t first_port_ = 0;
  uint64_t first_replay_port_ = 0;
  std::vector<std::unique_ptr<EventPublisher>> publishers_;
  std::vector<std::unique_ptr<EventQueue>> queues_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace fathom
