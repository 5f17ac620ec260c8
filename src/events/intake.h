// Follows the KV events of every worker in the fleet, and keeps the index true to them.
//
// Each worker is looked at as it joins: where are its events? Every source that is found has a
// stream of its own; what changes (a rank more, a worker gone) is noticed and followed.
//
// Threads  Streams run on a loop and thread of their own, which is also the one writer of the
// index.
//          Start(), StopPolling() and Stop() from one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "events/bound_stream.h"
#include "events/event_source.h"
#include "events/intake_context.h"
#include "events/source_finder.h"
#include "events/stream.h"
#include "fleet/fleet.h"

namespace fathom {

class Intake {
 public:
  using FindEndpoint = std::function<std::shared_ptr<const Endpoint>(WorkerId)>;

  // An error if it cannot bind. Everything must outlive it.
  static Result<std::unique_ptr<Intake>> Create(const IntakeOptions& options, const Fleet& fleet,
                                                FindEndpoint find_endpoint, Resolver& resolver,
                                                CacheIndex& index, FeedBoard& board,
                                                BlockSizes& sizes, Log& log);
  ~Intake() { Stop(); }
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  void Start();
  // A polled engine hands out each event once. A router that takes no new requests leaves them to
  // the one that comes after it.
  void StopPolling();
  void Stop();

 private:
  struct Followed {  // a source and its stream
    EventSource source;
    std::shared_ptr<Stream> stream;
  };
  struct Feed {  // a worker's
    StreamOwner owner;
    std::vector<Followed> streams;
    bool polled = false;
    bool gone = false;
    std::string said;    // the last problem that was logged
    TimePoint probed{};  // when ports that do not connect were last looked at
  };

  Intake(const IntakeOptions& options, const Fleet& fleet, FindEndpoint find_endpoint,
         Resolver& resolver, CacheIndex& index, FeedBoard& board, BlockSizes& sizes, Log& log);

  Task<void> Watch();
  Task<void> LookAfter(std::shared_ptr<Feed> feed);
  Task<void> Keep(std::shared_ptr<Stream> stream);
  Task<void> KeepPolling(std::shared_ptr<Stream> stream);
  void FollowFleet();
  void Carry(Feed& feed, SourcePlan plan);
  void Follow(Feed& feed, const EventSource& source);
  void Abandon(Feed& feed);
  void StopAll();
  Task<void> ProbeSilentStreams(Feed& feed);
  void Explain(Feed& feed, NoFeed kind, const std::string& problem);

  const Fleet& fleet_;
  const FindEndpoint find_endpoint_;
  Loop loop_;
  ZmqContext zmq_;
  Epochs::Seat seat_;
  IntakeContext context_;
  FleetReader reader_;
  uint64_t seen_version_ = ~uint64_t{0};
  std::unordered_map<WorkerId, std::shared_ptr<Feed>> feeds_;
  std::shared_ptr<BoundStream> bound_;
  size_t running_ = 0;  // streams with sockets that must be closed at the end
  bool stopping_ = false;
  std::function<void()> on_idle_;  // once nothing runs any more
  std::thread thread_;
};

}  // namespace fathom
