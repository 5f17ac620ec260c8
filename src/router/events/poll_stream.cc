#include "router/events/poll_stream.h"

#include <utility>

#include "io/net/yield.h"

namespace fathom {
namespace {

constexpr RepeatRule kGapLines{.freely = 5};

// The engine itself waits up to two seconds for events before it answers.
constexpr Duration kAnswerTime = std::chrono::seconds(15);
constexpr Duration kAfterFailure = std::chrono::seconds(1);
constexpr Duration kCorrectEvery = std::chrono::seconds(1);
// How often it is looked whether it is this router's turn, and whether an event came too late.
constexpr Duration kLookAgain = std::chrono::milliseconds(50);

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

PollStream::PollStream(IntakeContext& context, const StreamOwner& owner, Beginning beginning)
    : context_(context),
      owner_(owner),
      first_(std::move(beginning.first)),
      first_counted_(std::move(beginning.counted)),
      order_(std::move(beginning.known), context.loop.now()),
      caller_(context.loop, context.resolver, owner.endpoint, [this] { Doubt(); }),
      taking_over_(context.snapshots != nullptr && !order_.view().next.empty()) {
  if (first_ || taking_over_) catching_up_.emplace(owner_.worker->catch_up, context.loop.now());
  RankOf(0);  // so that the rank is visible before the first event
}

std::shared_ptr<PollStream::Rank> PollStream::SharedRankOf(uint32_t number) {
  std::shared_ptr<Rank>& rank = ranks_[number];
  if (!rank) {
    auto status = context_.board.Open(owner_.worker->id(), number,
                                      owner_.worker->spec().url + std::string(kPath));
    status->connected.store(up_, std::memory_order_relaxed);
    rank = std::make_shared<Rank>(*this, number);
    rank->feed = std::make_unique<RankFeed>(context_.index, context_.seat, owner_.worker,
                                            std::move(status), &context_.sizes);
    rank->feed->WatchLag(context_.board.lag_after_first_byte);
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
    rank->feed->status().connected.store(up, std::memory_order_relaxed);
  }
}

void PollStream::Stop() {
  stopped_ = true;
  for (auto& [number, rank] : ranks_) rank->feed->Close();
  ranks_.clear();
  if (context_.poll_turn != nullptr) context_.poll_turn->Ends(owner_.worker->id());
  if (asked_ != nullptr) asked_->Cancel();
}

void PollStream::Rest() {
  if (context_.poll_turn != nullptr) context_.poll_turn->Rests(owner_.worker->id());
}

void PollStream::Tick() {
  for (auto& [number, rank] : ranks_) rank->feed->Tick(context_.loop.now());
}

Task<Result<std::string>> PollStream::Ask(IntakeContext& context, const StreamOwner& owner) {
  const FetchRequest request = Poll(*owner.worker);
  const TimePoint deadline = context.loop.now() + kAnswerTime;
  auto asking = Fetch(context.loop, context.resolver, *owner.endpoint, request, deadline);
  auto answer = co_await asking;
  co_return EventsIn(std::move(answer));
}

Task<void> PollStream::Run() {
  if (first_) TakeOwn(order_.view(), *std::exchange(first_, std::nullopt));
  first_counted_.reset();
  if (taking_over_ && !stopped_) Spawn(TakeOver(shared_from_this()));
  const FetchRequest request = Poll(*owner_.worker);
  while (!stopped_) {
    if (order_.ready()) {  // a long answer is still being applied
      co_await context_.loop.Sleep(kLookAgain);
      continue;
    }
    if (!taking_over_) catching_up_.reset();
    if (!IsMyTurn()) {
      co_await context_.loop.Sleep(kLookAgain);
      continue;
    }
    const PolledView sent = order_.view();
    auto counted = context_.CountPoll();
    auto asking = caller_.Fetch(request, context_.loop.now() + kAnswerTime);
    auto polled = co_await asking;
    auto answer = EventsIn(std::move(polled));
    const bool answered = answer.has_value();
    // Also a stream that was stopped in the meantime: the others need the events.
    if (answered) TakeOwn(sent, *std::move(answer));
    counted.reset();
    if (stopped_) co_return;
    SetConnected(answered);
    if (!answered) Rest();
    co_await context_.loop.Sleep(up_ ? context_.options.poll_interval : kAfterFailure);
  }
}

// --- snapshots ----------------------------------------------------------------------------------

// Keeps the stream alive until then.
Task<void> PollStream::TakeOver(std::shared_ptr<PollStream> /*self*/) {
  std::vector<RankLabel> labels;
  for (const auto& [number, next] : order_.view().next) {
    labels.push_back({owner_.worker->id().value(), number});
  }
  AskedSnapshots asked(context_, labels);
  asked_ = &asked;
  auto awaiting = asked.Await();
  const AskedSnapshots::Snapshots snapshots = co_await awaiting;
  asked_ = nullptr;
  for (const auto& snapshot : snapshots) {
    auto adopting = Adopt(snapshot);
    co_await adopting;
  }
  taking_over_ = false;
  if (!stopped_) BeginSettling();
}

Task<void> PollStream::Adopt(std::shared_ptr<const HoldingSnapshot> snapshot) {
  const SnapshotHead& head = snapshot->head();
  const std::vector<uint64_t>& proof = head.mark.fingerprints;
  const uint32_t number = head.rank.dp_rank;
  const bool ours = !stopped_ && head.rank.worker == owner_.worker->id().value() &&
                    proof.size() == 2 && proof[0] == order_.view().process && !order_.next(number);
  bool good = false;
  if (ours) {
    const std::shared_ptr<Rank> rank = SharedRankOf(number);
    TrtllmDecoder::Past past{.last_id = head.mark.sequence,
                             .window = proof[1],
                             .block_size = head.shape.size,
                             .elsewhere = {}};
    auto importing = Import(*rank, snapshot, past);
    good = co_await importing;
    // Meanwhile the engine may have become another process.
    good = good && !stopped_ && proof[0] == order_.view().process &&
           order_.BeginAt(number, past.last_id + 1, context_.loop.now());
    if (good) {
      decoder_.Resume(number, past);
      rank->next = past.last_id + 1;
      rank->feed->status().last_sequence.store(static_cast<int64_t>(past.last_id),
                                               std::memory_order_relaxed);
      context_.snapshot_counts.blocks.fetch_add(snapshot->blocks(), std::memory_order_relaxed);
    } else if (!stopped_) {
      rank->feed->Reset(context_.loop.now(), RankFeed::Process::kSame);
    }
  }
  auto& count = good ? context_.snapshot_counts.adopted : context_.snapshot_counts.dropped;
  count.fetch_add(1, std::memory_order_relaxed);
}

Task<bool> PollStream::Import(Rank& rank, std::shared_ptr<const HoldingSnapshot> snapshot,
                              TrtllmDecoder::Past& past) {
  if (!rank.feed->BeginImport(std::move(snapshot), context_.loop.now(), &past.elsewhere)) {
    co_return false;
  }
  LoopShare share(context_.loop);
  // An answer that cannot be read clears the rank, and ends the import.
  while (!stopped_ && rank.feed->importing()) {
    if (!rank.feed->ImportSome(kSnapshotSlice)) co_return false;
    if (!rank.feed->importing()) co_return true;
    if (share.Spent(0)) co_await Yield(context_.loop);
  }
  co_return false;
}

std::optional<StreamMark> PollStream::Rank::Reflected() const {
  const PollStream& s = stream;
  if (s.stopped_ || s.taking_over_ || s.busy() || !s.up_ || !next || *next == 0 ||
      s.decoder_.held(number) > 0)
    return std::nullopt;
  if (feed->ExportBytes() == 0) return std::nullopt;
  return StreamMark{.sequence = *next - 1,
                    .fingerprints = {s.order_.view().process, s.decoder_.window(number)}};
}

Task<Result<std::string>> PollStream::Rank::Export(size_t most) {
  // Stop() lets go of both.
  const std::shared_ptr<PollStream> keep = stream.shared_from_this();
  const std::shared_ptr<Rank> self = stream.ranks_.at(number);
  Loop& loop = stream.context_.loop;
  const TimePoint until = loop.now() + kPatienceToTell;
  while (!stream.stopped_ && stream.busy() && loop.now() < until) {
    co_await loop.Sleep(kWhileExporting);
  }
  const auto mark = Reflected();
  if (!mark) co_return Fail(Blame::kPeer, "the rank is not followed well enough now");
  stream.exporting_ = true;
  auto exporting = ExportFeed(stream.context_, *feed, *mark, most);
  auto snapshot = co_await exporting;
  stream.exporting_ = false;
  co_return snapshot;
}

std::shared_ptr<TellableRank> PollStream::TellableOf(const RankLabel& rank) {
  if (rank.worker != owner_.worker->id().value()) return nullptr;
  const auto found = ranks_.find(rank.dp_rank);
  return found == ranks_.end() ? nullptr : found->second;
}

void PollStream::ListTellable(std::vector<RankLabel>& ranks) {
  for (const auto& [number, rank] : ranks_) {
    if (rank->Reflected()) ranks.push_back({owner_.worker->id().value(), number});
  }
}

// --- polling ------------------------------------------------------------------------------------

bool PollStream::IsMyTurn() const {
  return context_.poll_turn == nullptr || context_.poll_turn->Mine(owner_.worker->id());
}

void PollStream::TakeOwn(const PolledView& sent, std::string body) {
  auto events = Read(body);
  if (!events) return PassOn(std::move(body), !stopped_);
  const bool empty = events->empty();
  const bool certain = order_.TakeOwn(sent, *std::move(events), context_.loop.now());
  (void)order_.TakeContradiction();  // the view is passed on in any case
  PassOn(certain && !empty ? std::move(body) : std::string(), !stopped_);
  BeginSettling();
}

void PollStream::Heard(PolledWord word) {
  if (stopped_) return;
  if (word.polls) SetConnected(true);
  std::vector<TrtllmEvent> events;
  if (!word.body.empty() && word.view.process >= order_.view().process) {
    auto read = Read(word.body);
    if (read) events = *std::move(read);
  }
  order_.TakeHeard(word.view, std::move(events), context_.loop.now());
  if (order_.TakeContradiction()) PassOn({}, false);
  if (word.polls && order_.KnowsMoreThan(word.view)) Correct();
  BeginSettling();
}

// The router that polls has not heard of the engine's latest process, or of its latest events. What
// it passes on might be left out for ever.
void PollStream::Correct() {
  if (context_.loop.now() - corrected_ < kCorrectEvery) return;
  corrected_ = context_.loop.now();
  PassOn({}, false);
}

void PollStream::PassOn(std::string body, bool polls) {
  if (context_.poll_turn == nullptr) return;
  context_.poll_turn->Polled(owner_.worker->id(),
                             {.view = order_.view(), .body = std::move(body), .polls = polls});
}

std::optional<std::vector<TrtllmEvent>> PollStream::Read(std::string_view body) {
  const uint64_t malformed_before = decoder_.counters().malformed;
  auto events = decoder_.Read(body);
  if (!events) {
    ReportUnreadable(events.error().what);
    return std::nullopt;
  }
  const TrtllmDecoder::Counters& counters = decoder_.counters();
  if (counters.malformed > malformed_before) ReportMalformed(counters.first_problem);
  return *std::move(events);
}

void PollStream::ReportUnreadable(std::string_view problem) {
  if (stopped_) return;
  ranks_.begin()->second->feed->status().malformed_batches.Add(1);
  if (const auto before = malformed_lines_.Next(context_.loop.now())) {
    context_.log.Warn("An answer to /kv_cache_events could not be read",
                      {{"worker_id", owner_.worker->id().value()},
                       {"url", owner_.worker->spec().url},
                       {"detail", problem},
                       {"similar_before", *before}});
  }
  for (auto& [number, rank] : ranks_) {  // the answer's events are lost
    rank->feed->Reset(context_.loop.now(), RankFeed::Process::kSame);
  }
}

// Small answers are applied before this returns.
void PollStream::BeginSettling() {
  if (!settling_ && !taking_over_) Spawn(Settle(shared_from_this()));
}

// Applies what is ready, and goes on until nothing is held back. Keeps the stream alive until then.
Task<void> PollStream::Settle(std::shared_ptr<PollStream> /*self*/) {
  settling_ = true;
  LoopShare share(context_.loop);
  while (!stopped_) {
    if (exporting_) {
      co_await context_.loop.Sleep(kWhileExporting);
      continue;
    }
    GiveUpLate();
    bool applied = false;
    while (!stopped_) {
      auto step = order_.Next();
      if (!step) break;
      applied = true;
      Apply(*std::move(step));
      if (share.Spent(0)) co_await Yield(context_.loop);
    }
    if (applied && !stopped_) ProveExcess();
    if (stopped_ || !order_.waiting()) break;
    co_await context_.loop.Sleep(kLookAgain);
  }
  settling_ = false;
}

void PollStream::GiveUpLate() {
  const bool alone = context_.poll_turn == nullptr || context_.poll_turn->alone();
  order_.Expire(context_.loop.now(), alone ? Duration::zero() : PolledOrder::kPatience);
}

void PollStream::Apply(PolledOrder::Step step) {
  using What = PolledOrder::Step::What;
  if (step.what == What::kRestart) return Restart();
  if (step.what == What::kGap) return Lose(step.rank, step.lost);
  for (const PolledEvent& event : decoder_.Take(std::move(step.event))) Apply(event);
  ranks_.begin()->second->feed->status().malformed_events.Set(decoder_.counters().malformed);
}

void PollStream::Restart() {
  for (auto& [number, rank] : ranks_) {
    decoder_.Forget(number);
    rank->next.reset();
    rank->feed->status().restarts.Add(1);
    rank->feed->Reset(context_.loop.now());
  }
}

void PollStream::Lose(uint32_t number, uint64_t lost) {
  Rank& rank = RankOf(number);
  rank.feed->status().gaps.Add(1);
  rank.feed->status().lost_batches.Add(lost);
  rank.feed->Reset(context_.loop.now(), RankFeed::Process::kSame);
  rank.next.reset();
  decoder_.Forget(number);
  SayLost(rank, number, lost);
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
void PollStream::ProveExcess() {
  const uint32_t configured = context_.sizes.configured();
  if (configured == 0) return;
  for (const auto& [number, rank] : ranks_) {
    const uint32_t largest = decoder_.largest_held(number);
    if (largest <= configured) continue;
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
       {"fix",
        "raise the engine's event_buffer_max_size; connect routers that share it by --replicas"},
       {"similar_before", *before}});
}

void PollStream::Apply(const PolledEvent& event) {
  Rank& rank = RankOf(event.rank);
  FeedStatus& status = rank.feed->status();
  if (rank.next && event.id > *rank.next) {  // the decoder held too many
    const uint64_t lost = event.id - *rank.next;
    status.gaps.Add(1);
    status.lost_batches.Add(lost);
    rank.feed->Reset(context_.loop.now(), RankFeed::Process::kSame);
    SayLost(rank, event.rank, lost);
  }
  rank.next = event.id + 1;
  status.batches.Add(1);
  rank.feed->Apply(event.events, context_.loop.now());
  status.last_sequence.store(static_cast<int64_t>(event.id), std::memory_order_relaxed);
}

}  // namespace fathom
