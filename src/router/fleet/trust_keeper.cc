#include "router/fleet/trust_keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "metrics/catalogue.h"

namespace fathom {
namespace {

const FeedStatus* FeedOf(const FeedBoard::Feeds& feeds, uint32_t rank) {
  for (const auto& feed : feeds) {
    if (feed->dp_rank.load(std::memory_order_relaxed) == rank) return feed.get();
  }
  return nullptr;
}

uint64_t PreemptionsOf(const Worker& worker, uint32_t rank) {
  const auto report = worker.report.Current();
  if (report == nullptr) return 0;
  const auto load = std::ranges::find(report->loads, rank, &RankLoadReport::rank);
  return load == report->loads.end() ? 0 : load->preemptions;
}

RankFacts FactsOf(const Worker& worker, const Rank& rank, const FeedStatus* feed) {
  RankFacts facts{.prefix_caching = worker.report.prefix_caching(),
                  .preemptions = PreemptionsOf(worker, rank.number),
                  .pulse = rank.witness.pulse()};
  if (feed == nullptr) return facts;
  facts.batches = feed->batches.Get();
  facts.stored = feed->live_stored.Get();
  facts.removed = feed->live_removed.Get();
  facts.held = feed->blocks.Get();
  facts.lost = feed->lost_batches.Get();
  facts.gaps = feed->gaps.Get();
  facts.repaired = feed->repaired_batches.Get();
  facts.unknown_groups = feed->unsupported_groups.Get();
  return facts;
}

// Other changes are logged elsewhere: block sizes by BlockSizes, health by the prober.
bool IsOurs(const Trust& trust) {
  return trust.state == TrustState::kDoubted && trust.cause != TrustCause::kBlockSizeMismatch;
}

bool IsRoutable(const Trust& trust) {
  return trust.state == TrustState::kLearning || trust.state == TrustState::kTrusted;
}

size_t At(TrustCause cause) { return static_cast<size_t>(cause); }

}  // namespace

TrustKeeper::TrustKeeper(const TrustRules& rules, const Fleet& fleet, const BlockSizes& sizes,
                         const FeedBoard& feeds, TokenPieces pieces, Log& log)
    : rules_(rules),
      fleet_(fleet),
      sizes_(sizes),
      feeds_(feeds),
      pieces_(std::move(pieces)),
      log_(log) {
  // Counters must exist with 0 from the start, so that rate() sees the first increase.
  for (size_t i = At(TrustCause::kBlockSizeMismatch); i <= At(TrustCause::kChurn); ++i) {
    changes_[{TrustState::kDoubted, static_cast<TrustCause>(i)}] = 0;
  }
  changes_[{TrustState::kTrusted, TrustCause::kNone}] = 0;
}

void TrustKeeper::Tick(TimePoint now) {
  const auto fleet = fleet_.Current();
  const std::lock_guard lock(mutex_);
  const auto members = fleet->members();
  size_t looked_at = 0;
  for (size_t i = 0; i < members.size() && looked_at < kMostAtOnce; ++i) {
    next_ = next_ + 1 < members.size() ? next_ + 1 : 0;
    const Member& member = members[static_cast<std::ptrdiff_t>(next_)];
    if (!member.followed) continue;
    const FeedBoard::Feeds feeds = feeds_.Of(member.worker->id());
    member.worker->ranks.ForEach([&](Rank& rank) {
      Look(member, rank, FeedOf(feeds, rank.number), now);
      ++looked_at;
    });
  }
  if (any_unsaid_) Summarise(now);
  if (std::exchange(fleet_seen_, fleet) == fleet) return;
  std::erase_if(entries_, [&](const auto& entry) {
    const Member* const member = fleet->Find(entry.first.first);
    return member == nullptr || !member->followed || member->worker.get() != entry.second.worker;
  });
}

void TrustKeeper::Look(const Member& member, Rank& rank, const FeedStatus* feed, TimePoint now) {
  const Worker& worker = *member.worker;
  Entry& entry = entries_[{worker.id(), rank.number}];
  const uint64_t sizes = sizes_.version();
  if (entry.sizes != sizes || entry.worker != &worker) {
    entry.agreed = sizes_.TrustOf(worker.id(), rank.number);
    entry.sizes = sizes;
    entry.worker = &worker;
  }
  RankFacts facts = FactsOf(worker, rank, feed);
  facts.agreed = entry.agreed;
  const FeedBoard::Problem problem =
      feed == nullptr ? feeds_.ProblemOf(worker.id()) : FeedBoard::Problem();
  facts.publisher_off = problem.kind == NoFeed::kPublisherOff;
  Judgement judgement = rank.witness.Judge(rules_, facts, now);
  const Trust& was = entry.standing.trust;
  const bool changed = was.state != judgement.trust.state || was.cause != judgement.trust.cause;
  if (!changed && !IsOurs(judgement.trust)) {
    entry.standing.trust = judgement.trust;
    entry.standing.credit = judgement.credit;
    entry.standing.cost = judgement.cost;
    return;
  }
  Standing next{.trust = judgement.trust, .credit = judgement.credit, .cost = judgement.cost};
  if (IsOurs(judgement.trust)) {
    next.words = WordsOf(
        judgement.evidence,
        {.engine = worker.report.engine(), .feed = feed, .problem = problem, .pieces = &pieces_});
  }
  if (changed) Change(entry, member, rank.number, next, now);
  entry.standing = std::move(next);
}

void TrustKeeper::Change(Entry& entry, const Member& member, uint32_t rank, const Standing& next,
                         TimePoint now) {
  ++changes_[{next.trust.state, next.trust.cause}];
  const Standing& was = entry.standing;
  const bool ours = IsOurs(next.trust);
  if (!ours && !(IsOurs(was.trust) && IsRoutable(next.trust))) return;
  // A doubt that flaps is logged once, and so is its end.
  const size_t cause = At(ours ? next.trust.cause : was.trust.cause);
  if (ours) {
    if (entry.lines[cause].Next(now)) return SayDoubted(member, rank, next);
    any_unsaid_ = true;
    return;
  }
  if (entry.lines[cause].suppressed() == 0) SayTrusted(member, rank, was, next, now);
}

void TrustKeeper::SayDoubted(const Member& member, uint32_t rank, const Standing& now_is) {
  log_.Warn(fmt::format("A rank is doubted: {}", Name(now_is.trust.cause)),
            {{"worker_id", member.worker->id().value()},
             {"url", member.worker->spec().url},
             {"dp_rank", rank},
             {"cause", Name(now_is.trust.cause)},
             {"evidence", now_is.words.evidence},
             {"cost_tokens", now_is.cost},
             {"fix", now_is.words.fix},
             {"docs", log_.docs().To(RunbookOf(now_is.trust.cause))}});
}

void TrustKeeper::SayTrusted(const Member& member, uint32_t rank, const Standing& was,
                             const Standing& now_is, TimePoint now) {
  log_.Info(fmt::format("A rank is {} again", Name(now_is.trust.state)),
            {{"worker_id", member.worker->id().value()},
             {"url", member.worker->spec().url},
             {"dp_rank", rank},
             {"was", Name(was.trust.cause)},
             {"for_seconds", Seconds(now - was.trust.since)},
             {"cost_tokens", was.cost}});
}

void TrustKeeper::Summarise(TimePoint now) {
  any_unsaid_ = false;
  for (auto& [name, entry] : entries_) {
    for (size_t i = 0; i < kTrustCauses; ++i) {
      const auto times = entry.lines[i].Rest(now);
      any_unsaid_ = any_unsaid_ || entry.lines[i].suppressed() > 0;
      if (!times) continue;
      const Trust& trust = entry.standing.trust;
      log_.Warn("A rank was doubted repeatedly", {{"worker_id", name.first.value()},
                                                  {"url", entry.worker->spec().url},
                                                  {"dp_rank", name.second},
                                                  {"cause", Name(static_cast<TrustCause>(i))},
                                                  {"times", *times},
                                                  {"state", Name(trust.state)},
                                                  {"cost_tokens", entry.standing.cost}});
    }
  }
}

// Between two ticks, the state from block sizes and health is newer than the entry.
TrustKeeper::Standing TrustKeeper::StandingOf(WorkerId id, uint32_t rank) const {
  const BlockSizes::RankStanding agreed = sizes_.StandingOf(id, rank);
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({id, rank});
  if (found != entries_.end() && IsRoutable(agreed.trust) && IsOurs(found->second.standing.trust)) {
    return found->second.standing;
  }
  Standing standing{.trust = agreed.trust, .words = agreed.words};
  if (found == entries_.end()) return standing;
  const Standing& kept = found->second.standing;
  standing.cost = kept.cost;
  standing.credit = kept.credit;
  const bool same =
      kept.trust.state == agreed.trust.state && kept.trust.cause == agreed.trust.cause;
  if (same) standing.trust.since = kept.trust.since;
  return standing;
}

std::vector<TrustKeeper::Doubted> TrustKeeper::AllDoubted() const {
  std::vector<Doubted> all;
  const auto fleet = fleet_.Current();
  for (const Member& member : fleet->members()) {
    if (member.state != WorkerState::kReady) continue;
    member.worker->ranks.ForEach([&](const Rank& rank) {
      const Trust trust = StandingOf(member.worker->id(), rank.number).trust;
      if (trust.state != TrustState::kDoubted) return;
      all.push_back({member.worker->spec().url, rank.number, trust.cause});
    });
  }
  return all;
}

void TrustKeeper::Collect(const FleetSnapshot& fleet, Exposition& out) const {
  for (const Member& member : fleet.members()) {
    if (!member.followed) continue;
    const Worker& worker = *member.worker;
    worker.ranks.ForEach([&](const Rank& rank) {
      Trust trust = StandingOf(worker.id(), rank.number).trust;
      // A pod that loads its model, or ends, is no rank that was lost.
      const bool resting = member.origin->says != SourceSays::kServe;
      if (resting && trust.state == TrustState::kExcluded) trust = {TrustState::kProbing};
      const auto labels = [&](std::string_view name, std::string_view value) {
        return Labels{{"worker", worker.id_text()},
                      {"dp_rank", std::to_string(rank.number)},
                      {std::string(name), std::string(value)}};
      };
      for (size_t i = 0; i < kTrustStates; ++i) {
        const auto state = static_cast<TrustState>(i);
        out.Add(Metric("kv_router_rank_trust"), labels("state", Name(state)),
                state == trust.state ? 1 : 0);
      }
      if (trust.cause == TrustCause::kNone) return;
      out.Add(Metric("kv_router_rank_doubt"), labels("cause", Name(trust.cause)), 1);
    });
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [what, count] : changes_) {
    out.Add(Metric("kv_router_trust_changes_total"),
            {{"state", std::string(Name(what.first))}, {"cause", std::string(Name(what.second))}},
            static_cast<double>(count));
  }
}

}  // namespace fathom
