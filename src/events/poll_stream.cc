#include "events/poll_stream.h"

#include "http/fetch.h"

namespace fathom {
namespace {

// The engine itself waits up to two seconds for something to say.
constexpr Duration kAnswerTime = std::chrono::seconds(15);
constexpr Duration kAfterFailure = std::chrono::seconds(1);

}  // namespace

PollStream::PollStream(IntakeContext& context, const StreamOwner& owner, std::string first)
    : context_(context), owner_(owner), first_(std::move(first)) {
  RankOf(0);  // so that it is seen before the first event
}

PollStream::Rank& PollStream::RankOf(uint32_t number) {
  Rank& rank = ranks_[number];
  if (!rank.feed) {
    auto status = context_.board.Open(owner_.worker->id(), number,
                                      owner_.worker->spec().url + std::string(kPath));
    status->connected.store(up_, std::memory_order_relaxed);
    rank.feed = std::make_unique<RankFeed>(context_.index, context_.seat, owner_.worker,
                                           std::move(status), &context_.sizes);
    rank.feed->WatchLag(context_.board.lag_after_first_byte);
  }
  return rank;
}

void PollStream::SetConnected(bool up) {
  up_ = up;
  for (auto& [number, rank] : ranks_) {
    rank.feed->status().connected.store(up, std::memory_order_relaxed);
  }
}

void PollStream::Tick() {
  for (auto& [number, rank] : ranks_) rank.feed->Tick(context_.loop.now());
}

Task<Result<std::string>> PollStream::Ask(IntakeContext& context, const StreamOwner& owner) {
  FetchRequest request;
  request.method = "POST";
  request.path = std::string(kPath);
  request.max_answer = IntakeContext::kLargestAnswer;
  const std::string& key = owner.worker->spec().api_key;
  if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
  const TimePoint deadline = context.loop.now() + kAnswerTime;
  auto asking = Fetch(context.loop, context.resolver, *owner.endpoint, request, deadline);
  auto answer = co_await asking;
  if (!answer) co_return std::unexpected(std::move(answer).error());
  if (answer->status != 200) {
    co_return Fail(Blame::kPeer, "{} answered {}", kPath, answer->status);
  }
  co_return std::move(answer->body);
}

Task<void> PollStream::Run() {
  Apply(first_);
  first_.clear();
  while (!stopped_) {
    co_await context_.loop.Sleep(up_ ? context_.options.poll_interval : kAfterFailure);
    if (stopped_) co_return;
    auto asking = Ask(context_, owner_);
    const auto answer = co_await asking;
    if (stopped_) co_return;
    SetConnected(answer.has_value());
    if (answer) Apply(*answer);
  }
}

void PollStream::Apply(std::string_view body) {
  const auto events = decoder_.Decode(body);
  if (!events) {
    ranks_.begin()->second.feed->status().malformed_batches.Add(1);
    if (malformed_++ == 0) {
      context_.log.Warn("An answer to /kv_cache_events could not be read",
                        {{"worker_id", owner_.worker->id().value()},
                         {"url", owner_.worker->spec().url},
                         {"detail", events.error().what}});
    }
    for (auto& [number, rank] : ranks_) {  // its events are gone
      rank.feed->Reset(context_.loop.now(), RankFeed::Process::kSame);
    }
    return;
  }
  for (const PolledEvent& event : *events) Apply(event);
  for (const auto& [number, rank] : ranks_) ProveExcess(number);
  FeedStatus& first = ranks_.begin()->second.feed->status();
  first.malformed_events.Set(decoder_.counters().malformed);
  first.ignored_events.Set(decoder_.counters().ignored);
}

// Until an event shows how large blocks are, one that is larger than the operator's setting proves
// that it is wrong.
void PollStream::ProveExcess(uint32_t number) {
  const uint32_t configured = context_.sizes.configured();
  if (configured == 0) return;
  const uint32_t largest = decoder_.largest_held(number);
  if (largest > configured) {
    context_.sizes.Exceeded(*owner_.worker, number, largest, context_.loop.now());
  }
}

void PollStream::Apply(const PolledEvent& event) {
  Rank& rank = RankOf(event.rank);
  FeedStatus& status = rank.feed->status();
  if (rank.next && event.id > *rank.next) {
    const uint64_t lost = event.id - *rank.next;
    status.gaps.Add(1);
    status.lost_batches.Add(lost);
    rank.feed->Reset(context_.loop.now(), RankFeed::Process::kSame);
    decoder_.Forget(event.rank);
    context_.log.Warn("KV events were lost; what the rank held is forgotten and learnt anew",
                      {{"worker_id", owner_.worker->id().value()},
                       {"url", owner_.worker->spec().url},
                       {"dp_rank", event.rank},
                       {"detail", lost},
                       {"fix", "raise the engine's event_buffer_max_size"}});
  } else if (rank.next && event.id < *rank.next) {
    status.restarts.Add(1);
    rank.feed->Reset(context_.loop.now());
  }
  rank.next = event.id + 1;
  status.batches.Add(1);
  rank.feed->Apply(event.events, context_.loop.now());
  status.last_sequence.store(static_cast<int64_t>(event.id), std::memory_order_relaxed);
}

}  // namespace fathom
