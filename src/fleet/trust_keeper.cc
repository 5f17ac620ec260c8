#include "fleet/trust_keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "metrics/catalogue.h"

namespace fathom {
namespace {

using Feeds = std::vector<std::shared_ptr<const FeedStatus>>;

const FeedStatus* FeedOf(const Feeds& feeds, WorkerId worker, uint32_t rank) {
  for (const auto& feed : feeds) {
    if (feed->worker != worker) continue;
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
  facts.stored = feed->stored_blocks.Get();
  facts.held = feed->blocks.Get();
  facts.lost = feed->lost_batches.Get();
  facts.gaps = feed->gaps.Get();
  facts.repaired = feed->repaired_batches.Get();
  facts.unknown_groups = feed->unsupported_groups.Get();
  return facts;
}

// Others speak of these.
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
  // Counters that begin at 0, for whoever watches them rise.
  for (size_t i = At(TrustCause::kBlockSizeMismatch); i <= At(TrustCause::kChurn); ++i) {
    changes_[{TrustState::kDoubted, static_cast<TrustCause>(i)}] = 0;
  }
  changes_[{TrustState::kTrusted, TrustCause::kNone}] = 0;
}

void TrustKeeper::Tick(TimePoint now) {
  const Feeds feeds = feeds_.All();
  const auto fleet = fleet_.Current();
  const std::lock_guard lock(mutex_);
  for (const Member& member : fleet->members()) {
    member.worker->ranks.ForEach([&](Rank& rank) {
      Look(member, rank, FeedOf(feeds, member.worker->id(), rank.number), now);
    });
  }
  Summarise(now);
  std::erase_if(entries_,
                [&](const auto& entry) { return fleet->Find(entry.first.first) == nullptr; });
}

void TrustKeeper::Look(const Member& member, Rank& rank, const FeedStatus* feed, TimePoint now) {
  const Worker& worker = *member.worker;
  const BlockSizes::RankStanding agreed = sizes_.StandingOf(worker.id(), rank.number);
  RankFacts facts = FactsOf(worker, rank, feed);
  facts.agreed = agreed.trust;
  const Judgement judgement = rank.witness.Judge(rules_, facts, now);
  Standing next{.trust = judgement.trust,
                .words = agreed.words,
                .credit = judgement.credit,
                .cost = judgement.cost};
  if (IsOurs(judgement.trust)) {
    next.words = WordsOf(judgement.evidence, {.engine = worker.report.engine(),
                                              .feed = feed,
                                              .problem = feeds_.ProblemOf(worker.id()),
                                              .pieces = &pieces_});
  }
  Entry& entry = entries_[{worker.id(), rank.number}];
  entry.url = worker.spec().url;
  const Trust& was = entry.standing.trust;
  if (was.state != next.trust.state || was.cause != next.trust.cause) {
    Change(entry, member, rank.number, next, now);
  }
  entry.standing = std::move(next);
}

void TrustKeeper::Change(Entry& entry, const Member& member, uint32_t rank, const Standing& next,
                         TimePoint now) {
  ++changes_[{next.trust.state, next.trust.cause}];
  const Standing& was = entry.standing;
  const bool ours = IsOurs(next.trust);
  if (!ours && !(IsOurs(was.trust) && IsRoutable(next.trust))) return;
  // A doubt that comes and goes is said once, and so is its end.
  const size_t cause = At(ours ? next.trust.cause : was.trust.cause);
  if (ours) {
    const bool just_said = entry.said[cause] != TimePoint{} && now - entry.said[cause] < kRepeats;
    if (just_said) {
      ++entry.unsaid[cause];
      return;
    }
    entry.said[cause] = now;
    return SayDoubted(member, rank, next);
  }
  if (entry.unsaid[cause] == 0) SayTrusted(member, rank, was, next, now);
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
             {"docs", RunbookOf(now_is.trust.cause)}});
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
  for (auto& [name, entry] : entries_) {
    for (size_t i = 0; i < kTrustCauses; ++i) {
      if (entry.unsaid[i] == 0 || now - entry.said[i] < kRepeats) continue;
      const Trust& trust = entry.standing.trust;
      log_.Warn("A rank was doubted again and again", {{"worker_id", name.first.value()},
                                                       {"url", entry.url},
                                                       {"dp_rank", name.second},
                                                       {"cause", Name(static_cast<TrustCause>(i))},
                                                       {"times", entry.unsaid[i]},
                                                       {"state", Name(trust.state)},
                                                       {"cost_tokens", entry.standing.cost}});
      entry.unsaid[i] = 0;
      entry.said[i] = now;
    }
  }
}

// Between two looks, what block sizes and health say is newer.
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
    const Worker& worker = *member.worker;
    worker.ranks.ForEach([&](const Rank& rank) {
      const Trust trust = StandingOf(worker.id(), rank.number).trust;
      const auto labels = [&](std::string_view name, std::string_view value) {
        return Labels{{"worker", worker.id_text()},
                      {"rank", std::to_string(rank.number)},
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
