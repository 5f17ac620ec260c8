#include "router/events/followed_rank.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/events/msgpack_dialect.h"

namespace fathom {
namespace {

constexpr RepeatRule kRepeats{.pause = std::chrono::seconds(10)};

std::string BigEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (56 - 8 * i));
  return bytes;
}

}  // namespace

std::optional<NumberedPayload> ReadNumbered(const ZmqMessage& message) {
  if (message.size() < 2 || message.truncated()) return std::nullopt;
  const std::string& number = message[message.size() - 2];
  if (number.size() != 8) return std::nullopt;
  uint64_t sequence = 0;
  for (const char byte : number) sequence = sequence << 8 | static_cast<uint8_t>(byte);
  return NumberedPayload{sequence, message.back()};
}

FollowedRank::FollowedRank(IntakeContext& context, const StreamOwner& owner, uint32_t rank,
                           std::string source, std::string replay)
    : context_(context),
      owner_(owner),
      replay_(std::move(replay)),
      feed_(context.index, context.seat, owner.worker,
            context.board.Open(owner.worker->id(), rank, std::move(source)), &context.sizes),
      follower_(*this, !replay_.empty()),
      kept_(context.budget) {
  feed_.WatchLag(context.board.lag_after_first_byte);
  if (!replay_.empty()) catching_up_.emplace(owner_.worker->catch_up, context.loop.now());
}

void FollowedRank::Connected() {
  if (catching_up_) catching_up_->Progress(context_.loop.now());
  const bool first = !std::exchange(joined_, true);
  if (first && context_.snapshots != nullptr) {
    // Not before: a publisher that is never reached is asked for nowhere, and holds up nothing.
    if (!catching_up_) catching_up_.emplace(owner_.worker->catch_up, context_.loop.now());
    return AskForSnapshot();
  }
  Following(&StreamFollower::Connected);
}

// --- another router's snapshot ------------------------------------------------------------------

void FollowedRank::AskForSnapshot() {
  asked_ = std::make_shared<Asked>();
  auto take = [asker = std::weak_ptr(asked_), &counts = context_.snapshot_counts](
                  const std::shared_ptr<const HoldingSnapshot>& snapshot) {
    const auto asked = asker.lock();
    if (!asked) {
      if (snapshot) counts.dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    asked->answered = true;
    asked->snapshot = snapshot;
    if (asked->wait != nullptr) asked->wait->WakeNow();
  };
  auto answer = [take, &loop = context_.loop](std::shared_ptr<const HoldingSnapshot> snapshot) {
    loop.Post([take, snapshot = std::move(snapshot)] { take(snapshot); });
  };
  context_.snapshots->Ask(label(), asked_, std::move(answer));
}

Task<void> FollowedRank::AwaitSnapshot() {
  const std::shared_ptr<Asked> asked = asked_;
  if (!asked->answered && !stopped_) {
    WakeableWait wait(context_.loop, context_.loop.now() + context_.options.snapshot_wait);
    asked->wait = &wait;
    co_await wait;
    asked->wait = nullptr;
  }
  asked_.reset();
  offered_ = asked->snapshot;
  if (stopped_) {
    if (offered_) DropSnapshot();
    co_return;
  }
  offered_at_ = context_.loop.now();
  if (offered_ && !MayKeep(*offered_)) DropSnapshot();
  if (offered_) follower_.StartFrom(offered_->head().mark);
  if (catching_up_) catching_up_->Progress(context_.loop.now());
  Following(&StreamFollower::Connected);
}

// Without replay, snapshots of idle engines wait together for their next batches. Messages need
// the other half of the memory: one that finds none costs its connection.
bool FollowedRank::MayKeep(const HoldingSnapshot& snapshot) const {
  const ByteBudget& budget = context_.budget;
  return budget.used() + snapshot.bytes() <= budget.most() / 2;
}

bool FollowedRank::Adopt() {
  const auto snapshot = offered_;
  if (!feed_.BeginImport(snapshot, context_.loop.now())) return false;
  offered_.reset();
  importing_bytes_ = snapshot->bytes();
  importing_blocks_ = snapshot->blocks();
  status().last_sequence.store(static_cast<int64_t>(snapshot->head().mark.sequence),
                               std::memory_order_relaxed);
  return true;
}

void FollowedRank::DropSnapshot() {
  offered_.reset();
  context_.snapshot_counts.dropped.fetch_add(1, std::memory_order_relaxed);
}

void FollowedRank::ImportSome() {
  feed_.SetReplaying(true);
  const bool good = feed_.ImportSome(kSnapshotSlice);
  if (feed_.importing()) return;
  importing_bytes_ = 0;
  if (catching_up_) catching_up_->Progress(context_.loop.now());
  if (good) {
    context_.snapshot_counts.adopted.fetch_add(1, std::memory_order_relaxed);
    context_.snapshot_counts.blocks.fetch_add(importing_blocks_, std::memory_order_relaxed);
  } else {
    large_.reset();  // it followed the snapshot
    context_.snapshot_counts.dropped.fetch_add(1, std::memory_order_relaxed);
    Complain(
        "The index snapshot of another router is malformed; the rank's index entries were "
        "cleared",
        "its blocks cannot be read", "check that all routers have the same release");
    follower_.SnapshotSpoiled();
  }
  CopyCounts();
}

RankLabel FollowedRank::label() const {
  return {status().worker.value(), status().dp_rank.load(std::memory_order_relaxed)};
}

bool FollowedRank::tellable() const {
  return !stopped_ && !busy() && status().connected.load(std::memory_order_relaxed) &&
         feed_.ExportBytes() > 0 && follower_.Reflected().has_value();
}

// Routers that meet a new engine at the same time ask each other. A rank that waits for such an
// answer, or holds nothing yet, has nothing to tell soon.
bool FollowedRank::becoming_tellable() const {
  return !stopped_ && asked_ == nullptr && busy() && feed_.ExportBytes() > 0;
}

Task<Result<std::string>> FollowedRank::Export(size_t most) {
  const TimePoint until = context_.loop.now() + kPatienceToTell;
  while (becoming_tellable() && context_.loop.now() < until) {
    co_await context_.loop.Sleep(kWhileExporting);
  }
  if (!tellable()) co_return Fail(Blame::kPeer, "the rank is not followed well enough now");
  exporting_ = true;
  auto exporting = ExportFeed(context_, feed_, *follower_.Reflected(), most);
  auto snapshot = co_await exporting;
  exporting_ = false;
  co_return snapshot;
}

Task<void> FollowedRank::AwaitExport() {
  while (exporting_ && !stopped_) co_await context_.loop.Sleep(kWhileExporting);
}

void FollowedRank::Tick() {
  const TimePoint now = context_.loop.now();
  feed_.Tick(now);
  if (!follower_.deciding() || now - offered_at_ < context_.options.snapshot_wait) return;
  follower_.GiveUpSnapshot();
  CopyCounts();
}

// --- batches ------------------------------------------------------------------------------------

void FollowedRank::Following(void (StreamFollower::*step)()) {
  (follower_.*step)();
  CopyCounts();
}

Task<void> FollowedRank::Feed(const ZmqMessage& message) {
  // Tick() may have begun a replay since the last message.
  if (repairing()) {
    auto joining = Repair();
    co_await joining;
  }
  if (stopped_) co_return;
  Message(message);
  auto applying = ApplyRest();
  co_await applying;
  // A gap is repaired now, not when the next message arrives.
  if (!repairing()) co_return;
  auto repairing = Repair();
  co_await repairing;
}

void FollowedRank::Message(const ZmqMessage& message) {
  const auto batch = ReadNumbered(message);
  if (!batch || message.size() < 3) {
    status().stray_messages.Add(1);
    Complain("A message is not a KV event batch",
             fmt::format("{} frames instead of topic, sequence and payload", message.size()),
             "check that the endpoint is an engine's KV event publisher");
    return;
  }
  Live(*batch);
}

void FollowedRank::Live(const NumberedPayload& batch) {
  live_ = true;
  feed_.Published(context_.loop.now());  // even if it must wait for a replay
  follower_.Live(batch.sequence, batch.payload);
  live_ = false;
  CopyCounts();
}

bool FollowedRank::Apply(uint64_t sequence, std::string_view payload) {
  if (payload.size() > LargeBatch::kLarge || feed_.importing()) {
    large_.emplace(sequence, payload, context_.budget);
    large_live_ = live_;
    return true;
  }
  const auto batch = DecodeEventBatch(payload);
  if (!batch) {
    SayUnreadable(batch.error().what);
    return false;
  }
  feed_.SetReplaying(!live_);
  Stamp(batch->timestamp, live_);
  feed_.Apply(*batch, context_.loop.now());
  Applied(sequence, *batch);
  return true;
}

void FollowedRank::Applied(uint64_t sequence, const EventBatch& batch) {
  if (batch.malformed > 0) {
    Complain("A malformed KV event was skipped", batch.first_problem,
             "`fathom listen` shows what the engine sends");
  }
  status().last_sequence.store(static_cast<int64_t>(sequence), std::memory_order_relaxed);
}

Task<void> FollowedRank::ApplyRest() {
  LoopShare share(context_.loop);
  while (applying() && !stopped_) {
    feed_.importing() ? ImportSome() : ApplyLarge();
    if (share.Spent(0)) co_await Yield(context_.loop);
  }
}

void FollowedRank::ApplyLarge() {
  const TimePoint now = context_.loop.now();
  feed_.SetReplaying(!large_live_);
  const LargeBatch::Step step = large_->Advance(feed_, now);
  const EventBatch& head = large_->head();
  if (step == LargeBatch::Step::kMore) return;
  if (step == LargeBatch::Step::kChecked) {
    Stamp(head.timestamp, large_live_);
    const EventBatch rank_only{.rank = head.rank};
    return feed_.Apply(rank_only, now);
  }
  if (step == LargeBatch::Step::kDone) {
    const EventBatch left_out{.ignored = head.ignored, .malformed = head.malformed};
    feed_.Apply(left_out, now);
    Applied(large_->sequence(), head);
  } else {
    SayUnreadable(large_->problem());
    follower_.Spoiled();
  }
  large_.reset();
  CopyCounts();
}

void FollowedRank::SayUnreadable(std::string_view problem) {
  Complain("A KV event batch could not be read", problem,
           "check that Fathom supports the engine's release; `fathom listen` shows what the "
           "engine sends");
}

// The age of a live batch by the engine's clock is lag. That of a replayed one is only its age.
void FollowedRank::Stamp(double timestamp, bool live) {
  using FloatSeconds = std::chrono::duration<double>;
  const FloatSeconds offset =
      std::chrono::system_clock::now().time_since_epoch() - FloatSeconds(timestamp);
  constexpr FloatSeconds kAbsurd(1e6);
  if (!(timestamp > 0) || !(std::chrono::abs(offset) < kAbsurd)) return;
  const auto age = std::chrono::duration_cast<Duration>(offset);
  const TimePoint now = context_.loop.now();
  if (!live) return feed_.Published(now - std::max(age, Duration::zero()));
  const auto lag = feed_.Stamped(age, now);
  if (lag) context_.board.lag_by_timestamp.Observe(*lag);
}

void FollowedRank::Reset(ResetCause cause, uint64_t /*lost*/) {
  const bool another = cause == ResetCause::kRestart || cause == ResetCause::kReconnect;
  feed_.Reset(context_.loop.now(),
              another ? RankFeed::Process::kPerhapsAnother : RankFeed::Process::kSame);
  status().last_sequence.store(-1, std::memory_order_relaxed);
  switch (cause) {
    case ResetCause::kRestart:
      return SayRestarted();
    case ResetCause::kLostBatches:
      return;  // the rank becomes doubted, and that transition is logged
    case ResetCause::kReconnect:
      return Complain(
          "The KV event connection broke and the engine may have restarted; the rank's index "
          "entries were cleared",
          replay_.empty() ? "no replay endpoint" : "the replay endpoint does not respond",
          "give the engine a replay_endpoint that the router can reach");
    case ResetCause::kMalformed:
      return;  // logged by Apply()
  }
}

std::optional<uint64_t> FollowedRank::MaySay(std::string_view what) {
  return limits_[what].Next(context_.loop.now(), kRepeats);
}

void FollowedRank::SayRestarted() {
  constexpr std::string_view kWhat = "The engine restarted; the rank's index entries were cleared";
  const auto before = MaySay(kWhat);
  if (!before) return;
  context_.log.Info(kWhat, {{"worker_id", owner_.worker->id().value()},
                            {"url", owner_.worker->spec().url},
                            {"dp_rank", status().dp_rank.load(std::memory_order_relaxed)},
                            {"similar_before", *before}});
}

void FollowedRank::Complain(std::string_view what, std::string_view detail, std::string_view fix) {
  const auto before = MaySay(what);
  if (!before) return;
  context_.log.Warn(what, {{"worker_id", owner_.worker->id().value()},
                           {"url", owner_.worker->spec().url},
                           {"dp_rank", status().dp_rank.load(std::memory_order_relaxed)},
                           {"detail", detail},
                           {"fix", fix},
                           {"similar_before", *before}});
}

// While a batch is being applied it is not known whether it counts.
void FollowedRank::CopyCounts() {
  if (!applying()) follower_.Applied();
  const size_t snapshot = offered_ ? offered_->bytes() : importing_bytes_;
  kept_.HoldAnyway(follower_.kept_bytes() + snapshot);
  if (applying()) return;
  const StreamFollower::Counts& counts = follower_.counts();
  FeedStatus& s = status();
  s.batches.Set(counts.batches);
  s.gaps.Set(counts.gaps);
  s.repaired_batches.Set(counts.repaired);
  s.lost_batches.Set(counts.lost);
  s.duplicate_batches.Set(counts.duplicates);
  s.malformed_batches.Set(counts.malformed);
  s.restarts.Set(counts.restarts);
  s.reconnects.Set(counts.reconnects);
  s.replays.Set(counts.replays);
  s.replay_failures.Set(counts.replay_failures);
}

void FollowedRank::Stop() {
  stopped_ = true;
  catching_up_.reset();
  const bool undecided = feed_.importing() || offered_;
  feed_.Close();
  if (undecided) DropSnapshot();
  // Not at once: the caller may be in the middle of stopping others.
  if (asked_ && asked_->wait != nullptr) asked_->wait->Wake();
  if (replaying_ != nullptr) replaying_->Stop();
}

void FollowedRank::Cut(ZmtpFault fault) {
  if (fault == ZmtpFault::kNone) return;
  status().cut_connections.Add(1);
  const bool memory = fault == ZmtpFault::kMemory;
  Complain("The KV event connection was cut; it is opened again after a pause", Describe(fault),
           memory ? "raise --kv-events-memory, or find the engine that publishes so much"
                  : "check that the endpoint is an engine's KV event publisher; `fathom listen` "
                    "shows what it sends");
}

Task<void> FollowedRank::Repair() {
  if (asked_) {
    auto awaiting = AwaitSnapshot();
    co_await awaiting;
  }
  while (follower_.repairing() && !stopped_) {
    auto client = ZmtpClient::Create(
        context_.loop, context_.resolver, context_.budget, replay_,
        {.type = ZmtpType::kDealer, .topic = {}, .limits = IntakeContext::kStreamLimits});
    bool complete = false;
    if (client) {
      replaying_ = client->get();
      auto receiving = ReceiveReplay(**client);
      complete = co_await receiving;
      replaying_ = nullptr;
    }
    if (stopped_) co_return;
    Following(complete ? &StreamFollower::ReplayEnded : &StreamFollower::ReplayFailed);
    auto applying = ApplyRest();
    co_await applying;
  }
  catching_up_.reset();
}

// False: the replay broke off, or did not end in time.
Task<bool> FollowedRank::ReceiveReplay(ZmtpClient& client) {
  const std::string from = BigEndian(replay_from_);
  const ZmqMessage question{std::string_view(), from};
  TimePoint deadline = context_.loop.now() + context_.options.replay_timeout;
  bool asked = false;
  while (!stopped_) {
    auto waiting = client.Next(deadline);
    const ZmtpNews news = co_await waiting;
    if (news == ZmtpNews::kConnected) {
      auto asking = client.Send(question);
      asked = co_await asking;
      continue;
    }
    if (news == ZmtpNews::kDisconnected && !asked) continue;
    if (news == ZmtpNews::kDisconnected) Cut(client.fault());
    if (news != ZmtpNews::kMessage) co_return false;
    const auto batch = ReadNumbered(client.message());
    if (!batch) {
      status().stray_messages.Add(1);
      continue;
    }
    if (batch->sequence == kEndOfReplay && batch->payload.empty()) co_return true;
    follower_.Replayed(batch->sequence, batch->payload);
    CopyCounts();
    auto applying = ApplyRest();
    co_await applying;
    if (catching_up_) catching_up_->Progress(context_.loop.now());
    deadline = context_.loop.now() + context_.options.replay_timeout;
  }
  co_return false;
}

}  // namespace fathom
