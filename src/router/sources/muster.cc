#include "router/sources/muster.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "codec/url.h"

namespace fathom {
namespace {

void FillIn(std::string& setting, const std::string& other) {
  if (setting.empty()) setting = other;
}

void FillIn(std::optional<std::string>& setting, const std::optional<std::string>& other) {
  if (!setting) setting = other;
}

Result<void> CheckRole(const std::string& role) {
  if (role.empty() || role == "prefill" || role == "decode" || role == "both") return {};
  return Fail(Blame::kCaller, "role '{}': it must be prefill, decode or both", role.substr(0, 100));
}

Result<void> CheckLabels(const WorkerRequest& entry) {
  size_t bytes = 0;
  for (const auto& [name, value] : entry.labels) bytes += name.size() + value.size();
  if (bytes <= Muster::kMaxLabelBytes) return {};
  return Fail(Blame::kCaller, "its labels have {} bytes; at most {} are kept", bytes,
              Muster::kMaxLabelBytes);
}

}  // namespace

std::unique_ptr<Muster::Source> Muster::Open(std::string name, Rank rank) {
  const std::lock_guard lock(mutex_);
  auto record = std::make_shared<Record>();
  record->state.name = std::move(name);
  record->state.since = std::chrono::steady_clock::now();
  record->rank = rank;
  record->turn = ++turns_;
  records_.push_back(record);
  if (rank == Rank::kFound) {
    followed_.fetch_add(1, std::memory_order_relaxed);
    pending_.fetch_add(1, std::memory_order_relaxed);
  } else {
    record->state.asked = true;
  }
  return std::unique_ptr<Source>(new Source(*this, std::move(record)));
}

// Which setting is whose word: `from` decides which variables api_key_env may name, so it is that
// of the claim that names one. The name for certificates belongs to the strongest claim's URL.
WorkerRequest Muster::Merge(const std::vector<Held>& claims) {
  WorkerRequest merged = claims.front().claim.entry;
  for (size_t i = 1; i < claims.size(); ++i) {
    const WorkerRequest& other = claims[i].claim.entry;
    if (merged.api_key_env.empty() && !other.api_key_env.empty()) {
      merged.api_key_env = other.api_key_env;
      merged.from = other.from;
    }
    FillIn(merged.kv_events, other.kv_events);
    FillIn(merged.kv_events_replay, other.kv_events_replay);
    FillIn(merged.kv_events_topic, other.kv_events_topic);
    // Whom the operator's own workers are verified against is nobody else's word.
    const bool own = claims.front().claim.entry.from == WorkerRequest::From::kOperator;
    if (!own || other.from == WorkerRequest::From::kOperator) {
      FillIn(merged.ca_file, other.ca_file);
    }
    FillIn(merged.role, other.role);
    merged.labels.insert(other.labels.begin(), other.labels.end());
  }
  return merged;
}

WorkerOrigin Muster::OriginOf(const std::vector<Held>& claims, const WorkerRequest& merged) {
  WorkerOrigin origin{.sources = {}, .role = merged.role, .labels = merged.labels, .because = {}};
  for (const auto& [source, claim] : claims) {
    origin.sources.push_back(claim.place.empty() ? source->state.name : claim.place);
    if (claim.says <= origin.says) continue;
    origin.says = claim.says;
    origin.because = claim.because;
  }
  return origin;
}

Result<Muster::Proposal> Muster::Propose(const std::shared_ptr<Record>& source, Claim claim) const {
  TRY_VOID(CheckRole(claim.entry.role));
  TRY_VOID(CheckLabels(claim.entry));
  TRY(const Url url, Url::Parse(claim.entry.url));
  claim.entry.url = url.ToString();
  Proposal proposal{.id = WorkerId::OfUrl(claim.entry.url), .claims = {}};
  if (const auto known = entries_.find(proposal.id); known != entries_.end()) {
    proposal.claims = known->second.claims;
  }
  const auto mine = std::ranges::find(proposal.claims, source, &Held::source);
  proposal.first = mine == proposal.claims.end();
  proposal.changes = proposal.first || mine->claim != claim;
  if (!proposal.first) {
    mine->claim = std::move(claim);
    return proposal;
  }
  const auto strength = [](const Held& held) {
    return std::tuple(held.source->rank, held.source->turn);
  };
  Held held{source, std::move(claim)};
  const auto place = std::ranges::upper_bound(proposal.claims, strength(held), {}, strength);
  proposal.claims.insert(place, std::move(held));
  return proposal;
}

Result<WorkerId> Muster::Put(const std::shared_ptr<Record>& source, Claim claim) {
  TRY(Proposal proposal, Propose(source, std::move(claim)));
  const WorkerId id = proposal.id;
  if (!proposal.changes) return id;
  if (proposal.first && claims_ >= kMaxClaims) {
    return Fail(Blame::kOverload, "{} workers are already named, which is the limit", kMaxClaims);
  }
  const WorkerRequest merged = Merge(proposal.claims);
  TRY(WorkerPlan plan, directory_.Plan(merged));
  Entry& entry = entries_[id];
  entry.claims = std::move(proposal.claims);
  if (proposal.first) {
    ++claims_;
    source->workers.insert(id);
  }
  const auto applied = Apply(id, entry, std::move(plan), merged);
  if (!applied) SayFull(*source, applied.error());
  return id;
}

Result<void> Muster::Apply(WorkerId id, Entry& entry, WorkerPlan plan,
                           const WorkerRequest& merged) {
  if (entry.taken_out) return {};
  if (entry.worker != nullptr && entry.worker->spec() != plan.spec) {
    directory_.Leave(id, "its settings changed");
    entry.worker = nullptr;
  }
  if (entry.worker == nullptr) {
    auto joined = directory_.Join(std::move(plan));
    if (!joined) {
      waiting_.insert(id);
      return std::unexpected(std::move(joined).error());
    }
    entry.worker = *std::move(joined);
    waiting_.erase(id);
  }
  directory_.Describe(id, OriginOf(entry.claims, merged));
  return {};
}

// For claims that were accepted before. What cannot be planned any more, as a variable of a key
// that is gone, stays as it was.
bool Muster::Apply(WorkerId id, Entry& entry) {
  const WorkerRequest merged = Merge(entry.claims);
  auto plan = directory_.Plan(merged);
  if (!plan) {
    log_.Warn("A worker cannot be changed as its sources say; it stays as it was",
              {{"worker_id", id.value()}, {"url", merged.url}, {"reason", plan.error().what}});
    return true;
  }
  const auto applied = Apply(id, entry, *std::move(plan), merged);
  if (!applied) SayFull(*entry.claims.front().source, applied.error());
  return applied.has_value();
}

void Muster::SayFull(Record& source, const Error& error) {
  if (std::exchange(source.said_full, true)) return;
  log_.Warn("Some workers of a source were not added",
            {{"source", source.state.name}, {"reason", error.what}});
}

bool Muster::Drop(Record& source, WorkerId id, std::string_view cause) {
  if (source.workers.erase(id) == 0) return false;
  const auto found = entries_.find(id);
  Entry& entry = found->second;
  std::erase_if(entry.claims, [&](const Held& held) { return held.source.get() == &source; });
  --claims_;
  if (!entry.claims.empty()) {
    Apply(id, entry);
    return true;
  }
  Leave(id, entry, cause);
  entries_.erase(found);
  AdmitWaiting();
  return true;
}

void Muster::Leave(WorkerId id, Entry& entry, std::string_view cause) {
  waiting_.erase(id);
  if (std::exchange(entry.worker, nullptr) != nullptr) directory_.Leave(id, cause);
}

void Muster::AdmitWaiting() {
  const std::vector<WorkerId> waiting(waiting_.begin(), waiting_.end());
  for (const WorkerId id : waiting) {
    if (!Apply(id, entries_.at(id))) return;
  }
}

void Muster::End() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

bool Muster::TakeOut(WorkerId id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.taken_out) return false;
  Entry& entry = found->second;
  entry.taken_out = true;
  Leave(id, entry, "removed by an operator");
  // An entry that was written by hand does not come back by itself.
  std::erase_if(entry.claims, [&](const Held& held) {
    if (held.source->rank == Rank::kFound) return false;
    held.source->workers.erase(id);
    --claims_;
    return true;
  });
  if (entry.claims.empty()) entries_.erase(found);
  AdmitWaiting();
  return true;
}

void Muster::PutBack(WorkerId id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || !std::exchange(found->second.taken_out, false)) return;
  Apply(id, found->second);
}

bool Muster::IsTakenOut(WorkerId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found != entries_.end() && found->second.taken_out;
}

std::shared_ptr<Worker> Muster::Find(WorkerId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.worker;
}

std::vector<Muster::SourceState> Muster::Sources() const {
  std::vector<SourceState> states;
  const std::lock_guard lock(mutex_);
  for (const auto& record : records_) {
    if (record->rank != Rank::kFound) continue;
    SourceState& state = states.emplace_back(record->state);
    for (const WorkerId id : record->workers) {
      const Entry& entry = entries_.at(id);
      if (entry.taken_out) {
        state.taken_out.push_back(id);
      } else if (entry.worker == nullptr) {
        ++state.not_added;
      }
    }
    state.workers = record->workers.size() - state.taken_out.size();
  }
  return states;
}

// The first answer, or the first failure.
void Muster::Settle(Record& record) {
  if (!std::exchange(record.state.asked, true)) pending_.fetch_sub(1, std::memory_order_release);
}

Muster::Source::~Source() {
  const std::lock_guard lock(muster_.mutex_);
  if (muster_.ended_) return;
  const std::vector<WorkerId> workers(record_->workers.begin(), record_->workers.end());
  for (const WorkerId id : workers) muster_.Drop(*record_, id, "its source was removed");
  muster_.Settle(*record_);
  if (record_->rank == Rank::kFound) muster_.followed_.fetch_sub(1, std::memory_order_relaxed);
  std::erase(muster_.records_, record_);
}

Result<WorkerId> Muster::Source::Put(Claim claim) {
  const std::lock_guard lock(muster_.mutex_);
  return muster_.Put(record_, std::move(claim));
}

Result<void> Muster::Source::Check(Claim claim) const {
  const std::lock_guard lock(muster_.mutex_);
  TRY(const Proposal proposal, muster_.Propose(record_, std::move(claim)));
  if (proposal.changes) TRY_VOID(muster_.directory_.Plan(Merge(proposal.claims)));
  return {};
}

bool Muster::Source::Drop(WorkerId id, std::string_view cause) {
  const std::lock_guard lock(muster_.mutex_);
  return muster_.Drop(*record_, id, cause);
}

void Muster::Source::Ok() {
  const std::lock_guard lock(muster_.mutex_);
  SourceState& state = record_->state;
  if (!state.ok) {
    state.since = std::chrono::steady_clock::now();
    if (!state.error.empty()) {
      muster_.log_.Info("A source of workers works again", {{"source", state.name}});
    }
  }
  state.ok = true;
  state.error.clear();
  muster_.Settle(*record_);
}

void Muster::Source::Stale(std::string error) {
  const std::lock_guard lock(muster_.mutex_);
  SourceState& state = record_->state;
  if (state.ok) state.since = std::chrono::steady_clock::now();
  const bool known = !state.error.empty();
  state.ok = false;
  state.error = std::move(error);
  muster_.Settle(*record_);
  if (known) return;
  muster_.log_.Warn("A source of workers cannot be read; its workers stay as they are",
                    {{"source", state.name},
                     {"workers", record_->workers.size()},
                     {"reason", state.error},
                     {"docs", muster_.log_.docs().To("runbooks/source-stale.md")}});
}

void Muster::Source::Refused(std::string error) {
  const std::lock_guard lock(muster_.mutex_);
  SourceState& state = record_->state;
  if (state.ok) state.since = std::chrono::steady_clock::now();
  const bool known = state.error == error;
  state.ok = false;
  state.error = std::move(error);
  muster_.Settle(*record_);
  if (known) return;
  muster_.log_.Error("What a source of workers says was refused; its workers stay as they are",
                     {{"source", state.name},
                      {"workers", record_->workers.size()},
                      {"reason", state.error},
                      {"docs", muster_.log_.docs().To("runbooks/source-stale.md")}});
}

void Muster::Source::SetUnknown(std::string unknown) {
  const std::lock_guard lock(muster_.mutex_);
  record_->state.unknown = std::move(unknown);
}

bool Muster::Source::Claims(WorkerId id) const {
  const std::lock_guard lock(muster_.mutex_);
  return record_->workers.contains(id);
}

std::vector<WorkerId> Muster::Source::Workers() const {
  const std::lock_guard lock(muster_.mutex_);
  return {record_->workers.begin(), record_->workers.end()};
}

}  // namespace fathom
