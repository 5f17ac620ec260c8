// Follows the KV events of every worker in the fleet that serves a model of --models, and updates
// the index from them.
//
// When a worker joins, its event sources are looked up. Each source gets its own stream. Changes
// (an additional rank, a removed worker) are detected, and streams are started or stopped.
//
// Threads  Streams run on their own loop and thread, which is also the only writer of the index.
//          Start(), StopPolling() and Stop() from one thread. Export(), ListRanks(), TakePolled(),
//          polling() and snapshot_counts() from any.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "router/events/bound_stream.h"
#include "router/events/early_words.h"
#include "router/events/event_source.h"
#include "router/events/intake_context.h"
#include "router/events/source_finder.h"
#include "router/events/stream.h"
#include "router/fleet/fleet.h"

namespace fathom {

class Intake final : public SnapshotTeller {
 public:
  using FindEndpoint = std::function<std::shared_ptr<const Endpoint>(WorkerId)>;

  // Fails if it cannot bind. All arguments must outlive it.
  static Result<std::unique_ptr<Intake>> Create(const IntakeOptions& options, const Fleet& fleet,
                                                FindEndpoint find_endpoint, Resolver& resolver,
                                                CacheIndex& index, FeedBoard& board,
                                                BlockSizes& sizes, Log& log);
  ~Intake() override { Stop(); }
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // Before Start(). The source must outlive the intake's last call of it, and answer no more when
  // the intake is destroyed.
  void AskFirst(SnapshotSource& source) { context_.snapshots = &source; }
  // Before Start(): other routers poll the same engines. Must outlive the intake.
  void SharePolls(PollTurn& turn) { context_.poll_turn = &turn; }
  void Start();
  // What another router has polled. Dropped if too many wait.
  void TakePolled(WorkerId worker, PolledWord word);
  // A polled engine returns each event only once. A router that is shutting down stops polling, so
  // that the next router receives them.
  void StopPolling();
  // The other routers still need what the engines answer to polls that were sent before. An engine
  // holds a poll for up to two seconds, and the events that it then answers are in no other answer.
  bool polling() const;
  void Stop();

  void Export(const RankLabel& rank, size_t most, Told told) override;
  void ListRanks(Listed listed) override;
  const SnapshotCounts& snapshot_counts() const { return snapshot_counts_; }

 private:
  struct Followed {  // a source and its stream
    EventSource source;
    std::shared_ptr<Stream> stream;
  };
  struct Feed {  // of one worker
    StreamOwner owner;
    std::vector<Followed> streams;
    bool polled = false;  // by the only stream
    EarlyWords early;     // until it is known whether it is polled
    bool gone = false;
    std::string said;    // the last problem that was logged
    TimePoint probed{};  // when ports that do not connect were last probed
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
  std::shared_ptr<TellableRank> TellableOf(const RankLabel& rank);
  Task<void> TellOf(RankLabel rank, size_t most, Told told);

  const Fleet& fleet_;
  const FindEndpoint find_endpoint_;
  Loop loop_;
  ByteBudget budget_;
  Epochs::Seat seat_;
  SnapshotCounts snapshot_counts_;
  IntakeContext context_;
  FleetReader reader_;
  uint64_t seen_version_ = ~uint64_t{0};
  std::unordered_map<WorkerId, std::shared_ptr<Feed>> feeds_;
  std::shared_ptr<BoundStream> bound_;
  size_t running_ = 0;  // coroutines that have not ended: the watch, and streams
  bool stopping_ = false;
  bool exporting_ = false;
  std::function<void()> on_idle_;         // called when no stream runs any more
  std::promise<void> watch_ended_;        // Watch()
  std::atomic<size_t> polled_bytes_ = 0;  // of TakePolled(), on their way to the loop
  std::thread thread_;
};

}  // namespace fathom
