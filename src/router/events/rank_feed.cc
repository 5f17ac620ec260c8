#include "router/events/rank_feed.h"

namespace fathom {
namespace {

constexpr size_t kKeptRemovals = 4096;  // room of a rank between two batches

}  // namespace

RankFeed::RankFeed(CacheIndex& index, Epochs::Seat& seat, std::shared_ptr<Worker> worker,
                   std::shared_ptr<FeedStatus> status, BlockSizes* sizes)
    : index_(index),
      seat_(seat),
      worker_(std::move(worker)),
      status_(std::move(status)),
      sizes_(sizes) {
  worker_->ranks.Know(rank());
  seen_ = worker_->ranks.Find(rank());
  if (sizes_ != nullptr) sizes_->Followed(*worker_, rank(), std::chrono::steady_clock::now());
}

// The next feed of this rank, perhaps at another endpoint, may belong to another process.
RankFeed::~RankFeed() {
  worker_->ranks.Forget(rank());
  if (sizes_ != nullptr) sizes_->Reset(*worker_, rank(), std::chrono::steady_clock::now());
}

void RankFeed::Apply(const EventBatch& batch, TimePoint now) {
  if (batch.rank) SetRank(*batch.rank, now);
  status_->malformed_events.Add(batch.malformed);
  status_->ignored_events.Add(batch.ignored);
  Apply(batch.events, now);
}

void RankFeed::Apply(std::span<const CacheEvent> events, TimePoint now) {
  if (closed_) return;
  export_.reset();
  for (const CacheEvent& event : events) {
    if (const auto* removed = std::get_if<RemovedEvent>(&event)) {
      const CachePart part{removed->tier, removed->group};
      if (part != removals_from_) FlushRemovals();
      removals_from_ = part;
      removals_.insert(removals_.end(), removed->hashes.begin(), removed->hashes.end());
      continue;
    }
    FlushRemovals();
    if (const auto* stored = std::get_if<StoredEvent>(&event)) {
      Apply(*stored, now);
    } else if (const auto* moved = std::get_if<MovedEvent>(&event)) {
      if (holdings_) holdings_->Move(moved->hash, {moved->from, moved->group}, moved->to);
    } else {
      status_->clears.Add(1);
      if (holdings_) holdings_->Clear();
      shape_.reset();
    }
  }
  FlushRemovals();
  if (!replaying_) Published(now);
  CopyCounts();
}

void RankFeed::Published(TimePoint when) {
  const int64_t at = when.time_since_epoch().count();
  const int64_t before = status_->last_event.load(std::memory_order_relaxed);
  if (before != 0 && before >= at) return;
  status_->last_event.store(at, std::memory_order_relaxed);
}

void RankFeed::Apply(const StoredEvent& event, TimePoint now) {
  const BlockShape shape{.size = event.block_size, .pairs = event.pairs};
  if (!shape_) SetShape(shape, event.group);
  if (*shape_ != shape && !HasChangedTo(shape, event.group)) {
    status_->other_block_size.Add(1);
    return;
  }
  others_in_a_row_ = 0;
  if (!MayIndex(now)) {
    status_->mismatched_events.Add(1);
    sizes_->CountMismatch(*worker_, shape.size);
    return;
  }
  if (!OpenHoldings()) {
    earlier_.refused += event.hashes.size();
    return;
  }
  Compare(event, now);
  StoredRun run{.parent = event.parent,
                .hashes = event.hashes,
                .tokens = event.tokens,
                .locals = {},
                .extra = event.extra,
                .seed = NamespaceSeed(event.lora, event.salt),
                .part = {event.tier, event.group},
                .kind = event.kind,
                .window = event.window};
  holdings_->Store(run, now);
}

// Compares the event with the blocks that dispatched requests should produce. Only full-attention
// blocks on the device are computed by every request.
void RankFeed::Compare(const StoredEvent& event, TimePoint now) {
  if (seen_ == nullptr || !seen_->witness.expects()) return;
  if (event.tier != Tier::kDevice || event.kind != GroupKind::kFull || event.pairs) return;
  StoredTokens stored{.tokens = event.tokens};
  if (event.parent) {
    const auto before = holdings_->KeyOf(*event.parent);
    stored.place = before ? StoredTokens::Place::kKnown : StoredTokens::Place::kUnknown;
    stored.before = before.value_or(0);
  }
  const auto lag = seen_->witness.Stored(stored, now);
  if (lag && lag_ != nullptr) lag_->Observe(*lag);
}

std::optional<Duration> RankFeed::Stamped(Duration offset, TimePoint now) {
  if (seen_ == nullptr) return std::nullopt;
  return seen_->witness.Stamped(offset, now);
}

void RankFeed::SetShape(const BlockShape& shape, uint32_t group) {
  shape_ = shape;
  shape_group_ = group;
  status_->block_size.Set(shape.size);
  verdict_ = {};
}

// A single event of another size may be an exception. If kOthersInARow of them come without one of
// the known size, the engine has changed its size, even if no restart was seen. The old holdings
// are invalid.
bool RankFeed::HasChangedTo(const BlockShape& shape, uint32_t group) {
  if (group != shape_group_ || ++others_in_a_row_ < kOthersInARow) return false;
  CloseHoldings();
  SetShape(shape, group);
  return true;
}

// The event being applied proves the size again, in case BlockSizes has dropped it in the meantime.
bool RankFeed::MayIndex(TimePoint now) {
  if (sizes_ == nullptr) return true;
  const uint64_t version = sizes_->version();
  if (!verdict_.known || verdict_.version != version) {
    verdict_ = {true, sizes_->Proven(*worker_, rank(), shape_->size, now), version};
  }
  if (!verdict_.may_index) CloseHoldings();  // blocks that must not be indexed are not kept either
  return verdict_.may_index;
}

bool RankFeed::OpenHoldings() {
  if (holdings_ && holdings_->shape() != *shape_) CloseHoldings();
  if (!holdings_) holdings_ = index_.Open({status_->worker.value(), rank()}, *shape_, seat_);
  return holdings_ != nullptr;
}

void RankFeed::FlushRemovals() {
  if (!removals_.empty() && holdings_) {
    holdings_->Remove(removals_, removals_from_);
  } else {
    earlier_.unknown_removed += removals_.size();
  }
  removals_.clear();
  if (removals_.capacity() > kKeptRemovals) removals_ = {};
}

void RankFeed::Reset(TimePoint now, Process process) {
  CloseHoldings();
  shape_.reset();
  if (sizes_ != nullptr && process == Process::kPerhapsAnother) {
    sizes_->Reset(*worker_, rank(), now);
  }
  status_->resets.Add(1);
  status_->block_size.Set(0);
  CopyCounts();
}

void RankFeed::Close() {
  closed_ = true;
  CloseHoldings();
}

void RankFeed::Tick(TimePoint now) {
  if (!holdings_) return;
  if (sizes_ == nullptr || sizes_->MayIndex(*worker_, holdings_->shape().size)) {
    holdings_->ExpireOrphans(now);
  } else {
    CloseHoldings();
  }
  CopyCounts();
}

void RankFeed::SetRank(uint32_t number, TimePoint now) {
  const uint32_t before = rank();
  if (before == number) return;
  CloseHoldings();
  shape_.reset();
  worker_->ranks.Know(number);
  worker_->ranks.Forget(before);
  status_->dp_rank.store(number, std::memory_order_relaxed);
  seen_ = worker_->ranks.Find(number);
  if (sizes_ != nullptr) sizes_->Renumbered(*worker_, before, number, now);
}

void RankFeed::CloseHoldings() {
  export_.reset();
  import_.reset();
  imported_.reset();
  if (!holdings_) return;
  const HoldingCounters& c = holdings_->counters();
  earlier_.stored += c.stored.value();
  earlier_.removed += c.removed.value();
  earlier_.copies += c.copies.value();
  earlier_.unknown_removed += c.unknown_removed.value();
  earlier_.parked += c.parked.value();
  earlier_.adopted += c.adopted.value();
  earlier_.lost_orphans += c.lost_orphans.value();
  earlier_.conflicts += c.conflicts.value();
  earlier_.evicted += c.evicted.value();
  earlier_.refused += c.refused.value();
  earlier_.unsupported += c.unsupported.value();
  holdings_.reset();
}

// --- snapshots ----------------------------------------------------------------------------------

void RankFeed::BeginExport(const StreamMark& mark) {
  const SnapshotHead head{.rank = {status_->worker.value(), rank()},
                          .shape = holdings_->shape(),
                          .shape_group = shape_group_,
                          .mark = mark};
  export_.emplace(*holdings_, head);
}

std::optional<std::string> RankFeed::ExportSome(size_t blocks) {
  if (!export_->Advance(blocks)) return std::nullopt;
  std::string snapshot = export_->Take();
  export_.reset();
  return snapshot;
}

bool RankFeed::BeginImport(std::shared_ptr<const HoldingSnapshot> snapshot, TimePoint now,
                           HoldingImport::Elsewhere* elsewhere) {
  const SnapshotHead& head = snapshot->head();
  const RankLabel self{status_->worker.value(), rank()};
  if (closed_ || holdings_ || head.rank != self) return false;
  SetShape(head.shape, head.shape_group);
  if (!MayIndex(now) || !OpenHoldings()) {
    shape_.reset();
    return false;
  }
  imported_ = std::move(snapshot);
  import_.emplace(*holdings_, *imported_, elsewhere);
  return true;
}

bool RankFeed::ImportSome(size_t blocks) {
  const HoldingImport::Step step = import_->Advance(blocks);
  CopyCounts();
  if (step == HoldingImport::Step::kMore) return true;
  import_.reset();
  imported_.reset();
  return step == HoldingImport::Step::kDone;
}

void RankFeed::CopyCounts() {
  static const HoldingCounters kNothing;
  const HoldingCounters& c = holdings_ ? holdings_->counters() : kNothing;
  status_->stored_blocks.Set(earlier_.stored + c.stored.value());
  status_->removed_blocks.Set(earlier_.removed + c.removed.value());
  status_->copies.Set(earlier_.copies + c.copies.value());
  status_->unknown_removed.Set(earlier_.unknown_removed + c.unknown_removed.value());
  status_->parked_blocks.Set(earlier_.parked + c.parked.value());
  status_->adopted_blocks.Set(earlier_.adopted + c.adopted.value());
  status_->lost_orphans.Set(earlier_.lost_orphans + c.lost_orphans.value());
  status_->conflicts.Set(earlier_.conflicts + c.conflicts.value());
  status_->evicted_blocks.Set(earlier_.evicted + c.evicted.value());
  status_->refused_blocks.Set(earlier_.refused + c.refused.value());
  status_->unsupported_blocks.Set(earlier_.unsupported + c.unsupported.value());
  status_->blocks.Set(c.held.value());
  status_->removed_predecessors.Set(c.ghosts.value());
  status_->orphans.Set(c.orphans.value());
  status_->cache_parts.Set(c.lanes.value());
  status_->unsupported_groups.Set(c.unsupported_groups.value());
  CountLive();
  if (seen_ == nullptr) return;
  seen_->witness.Pulse({.removed = status_->removed_blocks.Get() + status_->unknown_removed.Get(),
                        .lives = status_->resets.Get() + status_->clears.Get()});
}

void RankFeed::CountLive() {
  const uint64_t stored = status_->stored_blocks.Get();
  const uint64_t removed = status_->removed_blocks.Get() + status_->unknown_removed.Get();
  if (!replaying_) {
    status_->live_stored.Add(stored - counted_stored_);
    status_->live_removed.Add(removed - counted_removed_);
  }
  counted_stored_ = stored;
  counted_removed_ = removed;
}

}  // namespace fathom
