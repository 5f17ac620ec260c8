#include "router/events/intake.h"

#include <algorithm>
#include <future>

#include "router/events/poll_stream.h"
#include "router/events/reach_probe.h"
#include "router/events/zmq_stream.h"

namespace fathom {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(50);
constexpr Duration kHousekeeping = std::chrono::seconds(5);
// How often a worker is queried for changes while all its streams are connected.
constexpr Duration kContent = std::chrono::seconds(30);
// How often a stream that does not connect is probed.
constexpr Duration kProbeAgain = std::chrono::seconds(3);
// At the end: a stream that still waits (for a name server) is abandoned with its loop.
constexpr Duration kPatienceAtTheEnd = std::chrono::milliseconds(300);

}  // namespace

Intake::Intake(const IntakeOptions& options, const Fleet& fleet, FindEndpoint find_endpoint,
               Resolver& resolver, CacheIndex& index, FeedBoard& board, BlockSizes& sizes, Log& log)
    : fleet_(fleet),
      find_endpoint_(std::move(find_endpoint)),
      budget_(options.memory),
      seat_(index.epochs()),
      context_{.loop = loop_,
               .budget = budget_,
               .resolver = resolver,
               .index = index,
               .seat = seat_,
               .board = board,
               .sizes = sizes,
               .log = log,
               .options = options,
               .snapshot_counts = snapshot_counts_},
      reader_(fleet) {}

Result<std::unique_ptr<Intake>> Intake::Create(const IntakeOptions& options, const Fleet& fleet,
                                               FindEndpoint find_endpoint, Resolver& resolver,
                                               CacheIndex& index, FeedBoard& board,
                                               BlockSizes& sizes, Log& log) {
  std::unique_ptr<Intake> intake(
      new Intake(options, fleet, std::move(find_endpoint), resolver, index, board, sizes, log));
  if (!options.bind.empty()) {
    TRY(intake->bound_, BoundStream::Open(intake->context_));
  }
  return intake;
}

void Intake::Start() {
  loop_.Post([this] {
    if (bound_) Spawn(Keep(bound_));
    Spawn(Watch());
  });
  thread_ = std::thread([this] { loop_.Run(); });
}

void Intake::TakePolled(WorkerId worker, PolledWord word) {
  const size_t bytes = word.body.size();
  if (polled_bytes_.fetch_add(bytes) > IntakeContext::kLargestAnswer) {
    word.body.clear();  // the view that stays shows that events are missing
  }
  loop_.Post([this, worker, bytes, word = std::move(word)]() mutable {
    polled_bytes_.fetch_sub(bytes);
    const auto found = feeds_.find(worker);
    if (found == feeds_.end()) return;
    Feed& feed = *found->second;
    if (feed.polled) {
      feed.streams.front().stream->Heard(std::move(word));
    } else if (std::ranges::none_of(feed.streams, [](const Followed& followed) {
                 return followed.stream->connected();
               })) {
      // A worker whose stream is connected is not polled here; the others will see that, too.
      feed.early.Keep(context_.budget, std::move(word));
    }
  });
}

// Counted like a poll: until it is done, one may begin.
void Intake::StopPolling() {
  loop_.Post([this, counted = context_.CountPoll()] {
    context_.polling_ended = true;
    for (const auto& [id, feed] : feeds_) {
      if (!feed->polled) continue;
      for (const Followed& followed : feed->streams) followed.stream->Stop();
    }
  });
}

bool Intake::polling() const {
  const PollTurn* const turn = context_.poll_turn;
  if (turn == nullptr || turn->alone()) return false;
  // In this order: an answer is passed on before its poll is no longer counted.
  return context_.polls.load() > 0 || turn->telling();
}

// Holdings must be released before the index: StopAll() does that, so it is waited for, which takes
// one turn of the loop; Watch() then ends within a tick. The streams have some time to end.
void Intake::Stop() {
  if (!thread_.joinable()) return;
  struct Progress {
    std::promise<void> stopped;
    std::promise<void> idle;
  };
  const auto progress = std::make_shared<Progress>();
  loop_.Post([this, progress] {
    on_idle_ = [progress] { progress->idle.set_value(); };
    StopAll();
    progress->stopped.set_value();
  });
  progress->stopped.get_future().wait();
  watch_ended_.get_future().wait();
  progress->idle.get_future().wait_for(kPatienceAtTheEnd);
  loop_.Stop();
  thread_.join();
}

void Intake::StopAll() {
  stopping_ = true;
  for (auto& [id, feed] : feeds_) Abandon(*feed);
  feeds_.clear();
  if (bound_) bound_->Stop();
  bound_.reset();
  if (running_ == 0) on_idle_();
}

// --- workers ------------------------------------------------------------------------------------

Task<void> Intake::Watch() {
  ++running_;
  TimePoint housekeeping = loop_.now() + kHousekeeping;
  while (!stopping_) {
    FollowFleet();
    if (loop_.now() >= housekeeping) {
      housekeeping = loop_.now() + kHousekeeping;
      for (auto& [id, feed] : feeds_) {
        for (const Followed& followed : feed->streams) followed.stream->Tick();
      }
      if (bound_) bound_->Tick();
      context_.index.epochs().Collect();
    }
    co_await loop_.Sleep(kTick);
  }
  --running_;
  if (running_ == 0) on_idle_();
  watch_ended_.set_value();
}

void Intake::FollowFleet() {
  if (fleet_.version() == seen_version_) return;
  seen_version_ = fleet_.version();
  const auto fleet = reader_.Get();
  for (auto it = feeds_.begin(); it != feeds_.end();) {
    // A worker that left and came back in the meantime has a new Worker object.
    const Member* const member = fleet->Find(it->first);
    if (member != nullptr && member->followed && member->worker == it->second->owner.worker) {
      ++it;
      continue;
    }
    Abandon(*it->second);
    it = feeds_.erase(it);
  }
  std::vector<StreamOwner> owners;
  for (const Member& member : fleet->members()) {
    if (!member.followed) continue;
    const WorkerId id = member.worker->id();
    if (!feeds_.contains(id)) {
      auto endpoint = find_endpoint_(id);
      if (!endpoint) continue;
      auto feed = std::make_shared<Feed>();
      feed->owner = {member.worker, std::move(endpoint)};
      feeds_.emplace(id, feed);
      Spawn(LookAfter(feed));
    }
    owners.push_back(feeds_.at(id)->owner);
  }
  if (bound_) bound_->SetOwners(std::move(owners));
}

Task<void> Intake::LookAfter(std::shared_ptr<Feed> feed) {
  while (!feed->gone) {
    auto finding = FindSources(context_, feed->owner);
    SourcePlan plan = co_await finding;
    if (feed->gone) co_return;
    const bool final = plan.final;
    Carry(*feed, std::move(plan));
    if (final) feed->owner.worker->catch_up.Searched();
    auto probing = ProbeSilentStreams(*feed);
    co_await probing;
    if (feed->gone) co_return;
    if (feed->polled) co_return;  // a query here would consume the stream's events
    const bool content =
        !feed->streams.empty() && std::ranges::all_of(feed->streams, [](const Followed& followed) {
          return followed.stream->connected();
        });
    co_await loop_.Sleep(content ? kContent : context_.options.look_again);
  }
}

// Starts and stops streams until they match the plan.
void Intake::Carry(Feed& feed, SourcePlan plan) {
  std::vector<PolledWord> early = feed.early.Take();
  if (!plan.final && !feed.streams.empty()) return;  // unreachable: the last plan stays valid
  if (plan.poll) {
    feed.polled = true;
    // Of a look at which the engine's poll failed.
    for (const Followed& followed : feed.streams) followed.stream->Stop();
    feed.streams.clear();
    context_.board.SetProblem(feed.owner.worker->id(), {});
    auto stream = std::make_shared<PollStream>(context_, feed.owner, *std::move(plan.poll));
    feed.streams.push_back({{}, stream});
    if (context_.polling_ended) stream->Stop();  // its first answer is passed on all the same
    Spawn(KeepPolling(stream));
    // After the stream has taken an answer of its own, which was asked for before.
    for (PolledWord& word : early) stream->Heard(std::move(word));
    context_.log.Info("Polling KV events", {{"worker_id", feed.owner.worker->id().value()},
                                            {"url", feed.owner.worker->spec().url}});
    return;
  }
  std::erase_if(feed.streams, [&](const Followed& followed) {
    if (std::ranges::find(plan.sources, followed.source) != plan.sources.end()) return false;
    followed.stream->Stop();
    return true;
  });
  for (const EventSource& source : plan.sources) {
    const bool known = std::ranges::any_of(
        feed.streams, [&](const Followed& followed) { return followed.source == source; });
    if (!known) Follow(feed, source);
  }
  if (plan.sources.empty() && !plan.problem.empty()) {
    Explain(feed, plan.publisher_off ? NoFeed::kPublisherOff : NoFeed::kOther, plan.problem);
  }
  if (!feed.streams.empty()) context_.board.SetProblem(feed.owner.worker->id(), {});
}

// If a port turns out to be reachable, its stream will connect to it soon.
Task<void> Intake::ProbeSilentStreams(Feed& feed) {
  if (loop_.now() - feed.probed < kProbeAgain) co_return;
  feed.probed = loop_.now();
  // Weak pointers: a stream may end while its port is being probed.
  std::vector<std::pair<std::string, std::weak_ptr<Stream>>> silent;
  for (const Followed& followed : feed.streams) {
    if (!followed.stream->connected())
      silent.emplace_back(followed.source.endpoint, followed.stream);
  }
  for (const auto& [endpoint, stream] : silent) {
    if (feed.gone) co_return;
    auto probing = ProbeReach(context_, endpoint);
    const FeedReach reach = co_await probing;
    if (const auto still = stream.lock()) still->SetReach(reach);
  }
}

void Intake::Follow(Feed& feed, const EventSource& source) {
  if (source.dials_out) {
    if (context_.options.bind.empty()) {
      Explain(feed, NoFeed::kDialsOut,
              "the engine connects its publisher to " + source.endpoint +
                  " instead of binding it; bind it (tcp://*:PORT), or start the router with "
                  "--kv-events-bind");
    }
    return;
  }
  auto stream = ZmqStream::Open(context_, feed.owner, source);
  if (!stream) return Explain(feed, NoFeed::kOther, stream.error().what);
  feed.streams.push_back({source, *stream});
  Spawn(Keep(*stream));
  context_.log.Info("Following KV events", {{"worker_id", feed.owner.worker->id().value()},
                                            {"url", feed.owner.worker->spec().url},
                                            {"dp_rank", source.rank},
                                            {"endpoint", source.endpoint},
                                            {"replay", source.replay},
                                            {"topic", source.topic}});
}

void Intake::Explain(Feed& feed, NoFeed kind, const std::string& problem) {
  context_.board.SetProblem(feed.owner.worker->id(), {kind, problem});
  if (kind == NoFeed::kPublisherOff) return;  // its ranks are doubted at once, which is logged
  if (feed.said == problem) return;
  feed.said = problem;
  context_.log.Warn("No KV events from a worker; its cache contents are unknown",
                    {{"worker_id", feed.owner.worker->id().value()},
                     {"url", feed.owner.worker->spec().url},
                     {"cause", problem},
                     {"docs", context_.log.docs().To(RunbookOf(TrustCause::kNoEvents))}});
}

void Intake::Abandon(Feed& feed) {
  feed.gone = true;
  context_.board.SetProblem(feed.owner.worker->id(), {});
  for (const Followed& followed : feed.streams) followed.stream->Stop();
  feed.streams.clear();
  (void)feed.early.Take();
}

// --- snapshots for other routers ----------------------------------------------------------------

std::shared_ptr<TellableRank> Intake::TellableOf(const RankLabel& rank) {
  if (const auto feed = feeds_.find(WorkerId(rank.worker)); feed != feeds_.end()) {
    for (const Followed& followed : feed->second->streams) {
      if (auto found = followed.stream->TellableOf(rank)) return found;
    }
  }
  return bound_ ? bound_->TellableOf(rank) : nullptr;
}

void Intake::ListRanks(Listed listed) {
  loop_.Post([this, listed = std::move(listed)]() mutable {
    std::vector<RankLabel> ranks;
    for (const auto& [id, feed] : feeds_) {
      for (const Followed& followed : feed->streams) followed.stream->ListTellable(ranks);
    }
    if (bound_) bound_->ListTellable(ranks);
    listed(std::move(ranks));
  });
}

void Intake::Export(const RankLabel& rank, size_t most, Told told) {
  loop_.Post([this, rank, most, told = std::move(told)]() mutable {
    Spawn(TellOf(rank, most, std::move(told)));
  });
}

Task<void> Intake::TellOf(RankLabel rank, size_t most, Told told) {
  const std::shared_ptr<TellableRank> known = TellableOf(rank);
  Result<std::string> snapshot = Fail(Blame::kPeer, "this router does not follow the rank");
  if (exporting_) {
    snapshot = Fail(Blame::kOverload, "another snapshot is being made");
  } else if (known) {
    exporting_ = true;
    auto exporting = known->Export(most);
    snapshot = co_await exporting;
    exporting_ = false;
  }
  auto& count = snapshot ? snapshot_counts_.told : snapshot_counts_.refused;
  count.fetch_add(1, std::memory_order_relaxed);
  told(std::move(snapshot));
}

Task<void> Intake::Keep(std::shared_ptr<Stream> stream) {
  ++running_;
  auto running = stream->Run();
  co_await running;
  stream.reset();
  --running_;
  if (stopping_ && running_ == 0) on_idle_();
}

// Not counted in running_: Stop() need not wait for the last answer.
Task<void> Intake::KeepPolling(std::shared_ptr<Stream> stream) {
  auto running = stream->Run();
  co_await running;
}

}  // namespace fathom
