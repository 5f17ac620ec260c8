#include "router/replicas/load_exchange.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

#include "router/replicas/told_time.h"

namespace fathom {
namespace {

// What changes seldom, or costs a look at every rank, is looked at in turn: all in so many ticks.
constexpr size_t kTurns = 10;
constexpr RankLabel kLastLabel{UINT64_MAX, UINT32_MAX};

auto LoadOrder(const RankLabel& label) { return std::tuple(label.worker, label.dp_rank); }

RankLabel LabelBefore(const RankLabel& label) {
  if (label.dp_rank > 0) return {label.worker, label.dp_rank - 1};
  return {label.worker - 1, UINT32_MAX};
}

}  // namespace

LoadExchange::LoadExchange(const Fleet& fleet, const EngineSpeed& speed, ReplicaVoice& voice,
                           Relieved relieved)
    : speed_(speed),
      voice_(voice),
      relieved_(std::move(relieved)),
      reader_(fleet),
      foreign_([this](const RankLabel& label, const ForeignLoad& sum) {
        if (Entry* const entry = Find(label)) SetForeign(*entry, sum);
      }) {}

// --- which ranks there are -----------------------------------------------------------------------

LoadExchange::Entry* LoadExchange::Find(const RankLabel& label) {
  const auto at = std::ranges::lower_bound(
      entries_, LoadOrder(label), {}, [](const Entry& entry) { return LoadOrder(entry.label); });
  return at != entries_.end() && at->label == label ? &*at : nullptr;
}

bool LoadExchange::LayoutChanged(TimePoint now) {
  if (fleet_ && now - followed_ < kLayout) return false;
  const auto& fleet = reader_.Get();
  // Read before the ranks: a change while they are listed is seen next time.
  const uint64_t layout = fleet->pulse().layout.load(std::memory_order_acquire);
  if (fleet == fleet_ && layout == layout_) return false;
  fleet_ = fleet;
  layout_ = layout;
  followed_ = now;
  return true;
}

void LoadExchange::FollowLayout(TimePoint now) {
  std::vector<Entry> before;
  before.swap(entries_);
  entries_.reserve(before.size());
  for (const Member& member : fleet_->members()) {
    const auto& worker = member.worker;
    const uint64_t id = worker->id().value();
    worker->ranks.ForEachMade([&](Rank& rank) {
      entries_.push_back({.label = {id, rank.number}, .worker = worker, .rank = &rank});
    });
    entries_.push_back({.label = {id, kNoRank}, .worker = worker});
  }
  std::ranges::sort(entries_, {}, [](const Entry& entry) { return LoadOrder(entry.label); });
  auto old = before.begin();
  const auto drop_until = [&](const auto& order) {
    for (; old != before.end() && LoadOrder(old->label) < order; ++old) {
      if (old->requests > 0) Add({.rank = old->label});  // its worker has left
    }
  };
  for (Entry& entry : entries_) {
    drop_until(LoadOrder(entry.label));
    const bool known = old != before.end() && old->label == entry.label;
    const bool same = known && old->worker == entry.worker;
    if (known) TakeOver(*old++, entry);
    if (!same) SetForeign(entry, foreign_.SumOf(entry.label));
  }
  drop_until(std::tuple(UINT64_MAX, UINT32_MAX));
  WatchBlocks();
  for (Entry& entry : entries_) Look(entry, now);
}

void LoadExchange::TakeOver(const Entry& old, Entry& entry) {
  entry.queued = old.queued;
  entry.context = old.context;
  entry.requests = old.requests;
  entry.waiting = old.waiting;
  // Another worker of the same name has heard nothing yet.
  if (old.worker == entry.worker) entry.elsewhere = old.elsewhere;
}

void LoadExchange::WatchBlocks() {
  blocks_.clear();
  loose_.clear();
  workers_.clear();
  std::unordered_map<const LoadBlock*, size_t> known;
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].rank == nullptr) {
      workers_.push_back(i);
      continue;
    }
    RankLoad::Standing standing = entries_[i].rank->load.standing();
    if (!standing.block) {
      loose_.push_back(i);
      continue;
    }
    const auto [at, is_new] = known.try_emplace(standing.block.get(), blocks_.size());
    if (is_new) {
      blocks_.push_back({std::move(standing.block), std::vector(LoadBlock::kMost, kNone)});
    }
    blocks_[at->second].entries[standing.place] = i;
  }
}

// --- telling -------------------------------------------------------------------------------------

RankGauge LoadExchange::GaugeOf(const Entry& entry, TimePoint now) {
  RankGauge gauge{.rank = entry.label};
  if (entry.rank != nullptr) {
    const RankLoad::Placed placed = entry.rank->load.placed();
    gauge.queued = placed.queued;
    gauge.oldest = placed.oldest;
    gauge.busy_ms = ToldMs(now - placed.busy_since);
    gauge.context = placed.context;
    gauge.requests = placed.requests;
    gauge.waiting = placed.waiting;
    return gauge;
  }
  const uint32_t all = entry.worker->in_flight.load(std::memory_order_relaxed);
  if (all == 0) return gauge;  // most workers of a large fleet, at most times: no rank is locked
  uint32_t with_rank = 0;
  entry.worker->ranks.ForEachMade([&](Rank& rank) { with_rank += rank.load.placed().requests; });
  gauge.requests = all > with_rank ? all - with_rank : 0;
  return gauge;
}

bool LoadExchange::IsNews(const Entry& entry, const RankGauge& gauge) {
  if (gauge.requests != entry.requests || gauge.waiting != entry.waiting) return true;
  if (gauge.queued != entry.queued) return true;
  const uint64_t moved =
      gauge.context > entry.context ? gauge.context - entry.context : entry.context - gauge.context;
  return moved > entry.context / 16;
}

void LoadExchange::Note(Entry& entry, const RankGauge& gauge) {
  entry.queued = gauge.queued;
  entry.context = gauge.context;
  entry.requests = gauge.requests;
  entry.waiting = gauge.waiting;
}

void LoadExchange::Look(Entry& entry, TimePoint now) {
  const RankGauge gauge = GaugeOf(entry, now);
  if (!IsNews(entry, gauge)) return;
  Note(entry, gauge);
  Add(gauge);
}

void LoadExchange::LookAtTouched(TimePoint now) {
  for (Watched& watched : blocks_) {
    for (uint64_t left = watched.block->TakeTouched(); left != 0; left &= left - 1) {
      const uint32_t entry = watched.entries[static_cast<size_t>(std::countr_zero(left))];
      if (entry != kNone) Look(entries_[entry], now);
    }
  }
  for (const uint32_t entry : loose_) Look(entries_[entry], now);
}

// What no rank tells by itself.
void LoadExchange::LookAround(TimePoint now) {
  const size_t turn = round_++ % kTurns;
  for (size_t i = turn; i < workers_.size(); i += kTurns) Look(entries_[workers_[i]], now);
  for (size_t i = turn; i < blocks_.size(); i += kTurns) EndSilent(blocks_[i], now);
}

// Choices end silent prefills when they look at the rank; a router that has none to make would go
// on telling them.
void LoadExchange::EndSilent(const Watched& watched, TimePoint now) {
  if (watched.block->silent() == 0) return;
  for (const uint32_t i : watched.entries) {
    if (i == kNone || !entries_[i].rank->load.silent()) continue;
    Rank& rank = *entries_[i].rank;
    rank.load.Look(now, speed_.unit() * rank.SlownessAt(now));
  }
}

void LoadExchange::Add(const RankGauge& gauge) {
  news_.ranks.push_back(gauge);
  if (news_.ranks.size() >= kMostTold) Flush();
}

void LoadExchange::Flush() {
  if (news_.ranks.empty()) return;
  std::ranges::sort(news_.ranks, {}, [](const RankGauge& gauge) { return LoadOrder(gauge.rank); });
  voice_.Tell(std::exchange(news_, {}));
}

// One range. The ranges of a round follow each other without gaps.
void LoadExchange::TellWhole(TimePoint now) {
  auto at = std::ranges::lower_bound(entries_, LoadOrder(whole_from_), {},
                                     [](const Entry& entry) { return LoadOrder(entry.label); });
  Gauges gauges{.whole = Gauges::Range{whole_from_, kLastLabel}};
  for (size_t looked = 0; at != entries_.end() && looked < kMostTold; ++at, ++looked) {
    const RankGauge gauge = GaugeOf(*at, now);
    Note(*at, gauge);
    if (!gauge.idle()) gauges.ranks.push_back(gauge);
  }
  const bool last = at == entries_.end();
  if (!last) gauges.whole->to = LabelBefore(at->label);
  whole_from_ = last ? RankLabel{} : at->label;
  hurry_ = hurry_ && !last;
  voice_.Tell(std::move(gauges));
}

void LoadExchange::Tick(TimePoint now) {
  // Each rank is looked at once in a tick: a message has no two gauges of one.
  if (LayoutChanged(now)) {
    FollowLayout(now);
  } else {
    LookAtTouched(now);
    LookAround(now);
  }
  // Others may hear a router that hears none of them: they are told the whole, or they would keep
  // its last word.
  voice_.peers().empty() ? news_.ranks.clear() : Flush();
  if (now < whole_due_) return;
  TellWhole(now);
  const size_t ranges = std::max<size_t>((entries_.size() + kMostTold - 1) / kMostTold, 1);
  const Duration pause = hurry_ ? Duration::zero() : kWhole / static_cast<int64_t>(ranges);
  whole_due_ = std::max<TimePoint>(whole_due_ + pause, now);
}

// --- hearing -------------------------------------------------------------------------------------

ForeignLoads::Total LoadExchange::Own() const {
  ForeignLoads::Total total;
  for (const Entry& entry : entries_) {
    total.requests += entry.requests;
    total.queued += entry.queued;
  }
  return total;
}

void LoadExchange::SetForeign(Entry& entry, const ForeignLoad& sum) {
  if (entry.rank != nullptr) less_ |= entry.rank->load.SetForeign(sum);
  const uint32_t more = sum.requests - std::exchange(entry.elsewhere, sum.requests);
  entry.worker->in_flight_elsewhere.fetch_add(more, std::memory_order_relaxed);
}

void LoadExchange::Heard(const ReplicaMessage& message, TimePoint now) {
  if (const auto* const gauges = std::get_if<Gauges>(&message.content)) {
    foreign_.Take(message.origin, message.number, *gauges, now);
    Relieve();
  }
}

void LoadExchange::Relieve() {
  if (std::exchange(less_, false) && relieved_) relieved_();
}

void LoadExchange::Joined(const std::string& origin, TimePoint now) {
  foreign_.Forget(origin);  // its numbers begin anew
  Relieve();
  whole_from_ = {};
  whole_due_ = now;
  hurry_ = true;
}

void LoadExchange::Left(const std::string& origin, TimePoint /*now*/) {
  foreign_.Forget(origin);
  Relieve();
}

}  // namespace fathom
