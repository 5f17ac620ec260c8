#include "router/fleet/block_sizes.h"

#include "metrics/catalogue.h"

namespace fathom {
namespace {

// If sizes need not agree, there is nothing to wait for either.
BlockSizeRules RulesFor(const BlockSizeRules& rules, bool watched) {
  return watched ? rules : BlockSizeRules{.mixed = true, .wait = Duration::zero()};
}

uint64_t Sum(const BlockSizeAgreement::Counts& counts) {
  uint64_t sum = 0;
  for (const auto& [sizes, count] : counts) sum += count;
  return sum;
}

}  // namespace

BlockSizes::BlockSizes(const BlockSizeRules& rules, bool watched, Fleet& fleet, Log& log,
                       TimePoint now)
    : rules_(RulesFor(rules, watched)),
      watched_(watched),
      fleet_(fleet),
      log_(log),
      agreement_(rules_, now),
      starting_(watched) {}

void BlockSizes::Join(const std::shared_ptr<Worker>& worker, TimePoint now) {
  const std::lock_guard lock(mutex_);
  workers_[worker->id()] = worker;
  agreement_.Join(worker->id(), worker->spec().url, now);
  CarryOut();
}

void BlockSizes::Leave(WorkerId id, TimePoint now) {
  const std::lock_guard lock(mutex_);
  agreement_.Leave(id, now);
  workers_.erase(id);
  CarryOut();
}

void BlockSizes::SetAside(const Worker& worker, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!Knows(worker)) return;
  agreement_.Leave(worker.id(), now);
  CarryOut();
}

void BlockSizes::TakeUp(const Worker& worker, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!Knows(worker)) return;
  agreement_.Join(worker.id(), worker.spec().url, now);
  CarryOut();
}

void BlockSizes::Serves(WorkerId id, std::vector<std::string> models, TimePoint now) {
  const std::lock_guard lock(mutex_);
  agreement_.Serves(id, std::move(models), now);
  CarryOut();
}

void BlockSizes::Answered(WorkerId id, TimePoint now) {
  const std::lock_guard lock(mutex_);
  agreement_.Answered(id, now);
  CarryOut();
}

void BlockSizes::Reported(WorkerId id, const EngineReport& report, TimePoint now) {
  const std::lock_guard lock(mutex_);
  agreement_.Reported(id, report.engine, report.event_block_size(), now);
  CarryOut();
}

void BlockSizes::Mentioned(WorkerId id, const EngineReport& report, TimePoint now) {
  const std::lock_guard lock(mutex_);
  agreement_.Reported(id, report.engine, report.event_block_size(), now,
                      BlockSizeAgreement::Learned::kInPassing);
  CarryOut();
}

void BlockSizes::Doubt(const Worker& worker, TimePoint now) {
  if (!watched_ || !interview_) return;
  const std::lock_guard lock(mutex_);
  if (!Knows(worker)) return;
  agreement_.Doubt(worker.id(), now);
  CarryOut();
}

void BlockSizes::Failed(WorkerId id, TimePoint now) {
  const std::lock_guard lock(mutex_);
  agreement_.Failed(id, now);
  CarryOut();
}

bool BlockSizes::Knows(const Worker& worker) const {
  const auto found = workers_.find(worker.id());
  return found != workers_.end() && found->second.get() == &worker;
}

void BlockSizes::Followed(const Worker& worker, uint32_t rank, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!Knows(worker)) return;
  agreement_.Followed(worker.id(), rank, now);
  CarryOut();
}

void BlockSizes::Renumbered(const Worker& worker, uint32_t from, uint32_t to, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!Knows(worker)) return;
  agreement_.Renumbered(worker.id(), from, to, now);
  CarryOut();
}

bool BlockSizes::Proven(const Worker& worker, uint32_t rank, uint32_t size, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!Knows(worker)) return false;
  const bool may = agreement_.Proven(worker.id(), rank, size, now);
  CarryOut();
  return may;
}

void BlockSizes::Exceeded(const Worker& worker, uint32_t rank, uint32_t at_least, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!Knows(worker)) return;
  agreement_.Exceeded(worker.id(), rank, at_least, now);
  CarryOut();
}

void BlockSizes::Reset(const Worker& worker, uint32_t rank, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!Knows(worker)) return;
  agreement_.Reset(worker.id(), rank, now);
  Worker& known = *workers_[worker.id()];
  known.report.Suspect();  // its last report may be another process's
  known.usage.Reset();
  CarryOut();
}

bool BlockSizes::MayIndex(const Worker& worker, uint32_t size) const {
  const std::lock_guard lock(mutex_);
  return Knows(worker) && agreement_.MayIndex(worker.id(), size);
}

void BlockSizes::CountMismatch(const Worker& worker, uint32_t size) {
  const std::lock_guard lock(mutex_);
  if (Knows(worker)) agreement_.CountMismatch(worker.id(), size);
}

bool BlockSizes::Tick(TimePoint now, bool more) {
  const std::lock_guard lock(mutex_);
  agreement_.Tick(now, more);
  CarryOut();
  return agreement_.starting();
}

std::vector<std::string> BlockSizes::Awaited() const {
  const std::lock_guard lock(mutex_);
  return agreement_.awaited();
}

void BlockSizes::CarryOut() {
  const BlockSizeAgreement::Outcome outcome = agreement_.Take();
  for (const auto& [id, rank] : outcome.trust) Score(id, rank);
  if (outcome.anything()) version_.fetch_add(1, std::memory_order_release);
  if (!watched_) return;
  for (const SizeRemark& remark : outcome.remarks) Say(remark, log_);
  for (const auto& [id, admission] : outcome.admissions) {
    const bool refused = admission == Membership::kRefused;
    fleet_.SetMembership(id, admission,
                         refused ? std::string(Name(TrustCause::kBlockSizeConflict)) : "");
  }
  for (const WorkerId id : outcome.interviews) {
    workers_[id]->report.Suspect();
    interview_(id);
  }
  refused_.store(agreement_.refused_to_start(), std::memory_order_release);
  starting_.store(agreement_.starting(), std::memory_order_release);
}

void BlockSizes::Score(WorkerId id, uint32_t rank) {
  const auto found = workers_.find(id);
  Rank* const scored = found == workers_.end() ? nullptr : found->second->ranks.Find(rank);
  if (scored == nullptr) return;
  const bool doubted = agreement_.TrustOf(id, rank).state == TrustState::kDoubted;
  scored->doubted.store(doubted, std::memory_order_relaxed);
}

BlockSizes::RankStanding BlockSizes::StandingOf(WorkerId id, uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(id);
  TrustFacts facts{
      .trust = agreement_.TrustOf(id, rank),
      .engine = found == workers_.end() ? EngineKind::kUnknown : found->second->report.engine(),
      .known = agreement_.SizeOf(id, rank),
      .expected = agreement_.ExpectedOf(id),
      .mismatches = Sum(agreement_.MismatchesOf(id))};
  if (facts.trust.cause == TrustCause::kBlockSizeMismatch && rules_.configured != 0) {
    facts.others = agreement_.OthersOf(id, facts.known.size);
    facts.setting = rules_.setting;
  }
  return {facts.trust, WordsOf(facts)};
}

Trust BlockSizes::TrustOf(WorkerId id, uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  return agreement_.TrustOf(id, rank);
}

BlockSizeAgreement::Known BlockSizes::SizeOf(WorkerId id) const {
  const std::lock_guard lock(mutex_);
  return agreement_.SizeOf(id);
}

void BlockSizes::Collect(const FleetSnapshot& fleet, Exposition& out) const {
  const std::lock_guard lock(mutex_);
  for (const Member& member : fleet.members()) {
    const Worker& worker = *member.worker;
    // A rank whose size is known has its counter from the start: increase() does not see the first
    // value of a series.
    BlockSizeAgreement::Counts mismatches = agreement_.MismatchesOf(worker.id());
    const uint32_t expected = agreement_.ExpectedOf(worker.id());
    worker.ranks.ForEach([&](const Rank& rank) {
      const BlockSizeAgreement::Known known = agreement_.SizeOf(worker.id(), rank.number);
      if (known.source == SizeSource::kNone) return;
      out.Add(Metric("kv_router_block_size"),
              {{"worker", worker.id_text()},
               {"dp_rank", std::to_string(rank.number)},
               {"source", std::string(Name(known.source))}},
              known.size);
      mismatches.try_emplace({expected, known.size}, 0);
    });
    for (const auto& [sizes, count] : mismatches) {
      out.Add(Metric("kv_router_block_size_mismatch_total"),
              {{"worker", worker.id_text()},
               {"configured", std::to_string(sizes.first)},
               {"reported", std::to_string(sizes.second)}},
              static_cast<double>(count));
    }
  }
}

}  // namespace fathom
