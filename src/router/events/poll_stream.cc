#include "router/events/poll_stream.h"

#include <utility>

#include "io/net/yield.h"

namespace fathom {
namespace {

constexpr RepeatRule kGapLines{.freely = 5};

// The engine itself waits up to two seconds for events before it answers.
constexpr Duration kAnswerTime = std::chrono::seconds(15);
constexpr Duration kAfterFailure = std::chrono::seconds(1);

FetchRequest Poll(const Worker& worker) {
  FetchRequest request;
  request.method = "POST";
  request.path = std::string(PollStream::kPath);
  request.max_answer = IntakeContext::kLargestAnswer;
  const std::string& key = worker.spec().api_key;
  if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
  return request;
}

Result<std::string> EventsIn(NetResult<FetchAnswer> answer) {
  if (!answer) return std::unexpected(std::move(answer).error());
  if (answer->status != 200) {
    return Fail(Blame::kPeer, "{} answered {}", PollStream::kPath, answer->status);
  }
  return std::move(answer->body);
}

}  // namespace

PollStream::PollStream(IntakeContext& context, const StreamOwner& owner, std::string first)
    : context_(context),
      owner_(owner),
      first_(std::move(first)),
      caller_(context.loop, context.resolver, owner.endpoint, [this] { Doubt(); }) {
  catching_up_.emplace(owner_.worker->catch_up, context.loop.now());
  RankOf(0);  // so that the rank is visible before the first event
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

void PollStream::Doubt() {
  if (!stopped_) context_.sizes.Doubt(*owner_.worker, context_.loop.now());
}

void PollStream::SetConnected(bool up) {
  const bool lost = std::exchange(up_, up) && !up;
  if (lost) Doubt();
  for (auto& [number, rank] : ranks_) {
    rank.feed->status().connected.store(up, std::memory_order_relaxed);
  }
}

void PollStream::Tick() {
  for (auto& [number, rank] : ranks_) rank.feed->Tick(context_.loop.now());
}

Task<Result<std::string>> PollStream::Ask(IntakeContext& context, const StreamOwner& owner) {
  const FetchRequest request = Poll(*owner.worker);
  const TimePoint deadline = context.loop.now() + kAnswerTime;
  auto asking = Fetch(context.loop, context.resolver, *owner.endpoint, request, deadline);
  auto answer = co_await asking;
  co_return EventsIn(std::move(answer));
}

Task<void> PollStream::Run() {
  auto beginning = Apply(first_);
  co_await beginning;
  catching_up_.reset();
  first_.clear();
  const FetchRequest request = Poll(*owner_.worker);
  while (!stopped_) {
    auto asking = caller_.Fetch(request, context_.loop.now() + kAnswerTime);
    auto polled = co_await asking;
    const auto answer = EventsIn(std::move(polled));
    if (stopped_) co_return;
    SetConnected(answer.has_value());
    if (answer) {
      auto applying = Apply(*answer);
      co_await applying;
      if (stopped_) co_return;
    }
    co_await context_.loop.Sleep(up_ ? context_.options.poll_interval : kAfterFailure);
  }
}

Task<void> PollStream::Apply(std::string_view body) {
  const uint64_t malformed_before = decoder_.counters().malformed;
  const auto events = decoder_.Decode(body);
  if (!events) {
    ranks_.begin()->second.feed->status().malformed_batches.Add(1);
    if (const auto before = malformed_lines_.Next(context_.loop.now())) {
      context_.log.Warn("An answer to /kv_cache_events could not be read",
                        {{"worker_id", owner_.worker->id().value()},
                         {"url", owner_.worker->spec().url},
                         {"detail", events.error().what},
                         {"similar_before", *before}});
    }
    for (auto& [number, rank] : ranks_) {  // the answer's events are lost
      rank.feed->Reset(context_.loop.now(), RankFeed::Process::kSame);
    }
    co_return;
  }
  LoopShare share(context_.loop);
  for (const PolledEvent& event : *events) {
    Apply(event);
    if (share.Spent(0)) co_await Yield(context_.loop);
    if (stopped_) co_return;
  }
  for (const auto& [number, rank] : ranks_) ProveExcess(number);
  FeedStatus& first = ranks_.begin()->second.feed->status();
  const TrtllmDecoder::Counters& counters = decoder_.counters();
  if (counters.malformed > malformed_before) ReportMalformed(counters.first_problem);
  first.malformed_events.Set(counters.malformed);
}

// `problem` is that of the stream's first one.
void PollStream::ReportMalformed(std::string_view problem) {
  const auto before = malformed_lines_.Next(context_.loop.now());
  if (!before) return;
  context_.log.Warn("A malformed KV event was skipped",
                    {{"worker_id", owner_.worker->id().value()},
                     {"url", owner_.worker->spec().url},
                     {"detail", problem},
                     {"fix", "`fathom listen` shows what the engine sends"},
                     {"similar_before", *before}});
}

// Before an event proves the block size, a held block that is larger than the operator's setting
// proves that the setting is wrong.
void PollStream::ProveExcess(uint32_t number) {
  const uint32_t configured = context_.sizes.configured();
  if (configured == 0) return;
  const uint32_t largest = decoder_.largest_held(number);
  if (largest > configured) {
    context_.sizes.Exceeded(*owner_.worker, number, largest, context_.loop.now());
  }
}

void PollStream::SayLost(Rank& rank, uint32_t number, uint64_t lost) {
  const auto before = rank.gap_lines.Next(context_.loop.now(), kGapLines);
  if (!before) return;
  context_.log.Warn(
      "KV events were lost; the rank's index entries were cleared and are "
      "rebuilt from new events",
      {{"worker_id", owner_.worker->id().value()},
       {"url", owner_.worker->spec().url},
       {"dp_rank", number},
       {"detail", lost},
       {"fix", "raise the engine's event_buffer_max_size"},
       {"similar_before", *before}});
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
    SayLost(rank, event.rank, lost);
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
