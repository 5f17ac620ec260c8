#include "fleet/fleet.h"

#include <algorithm>
#include <utility>

namespace fathom {

std::string_view Name(WorkerState state) {
  switch (state) {
    case WorkerState::kProbing:
      return "probing";
    case WorkerState::kReady:
      return "ready";
    case WorkerState::kUnhealthy:
      return "unhealthy";
    case WorkerState::kExcluded:
      return "excluded";
  }
  return "unknown";
}

FleetSnapshot::FleetSnapshot(std::vector<Member> members) : members_(std::move(members)) {
  bool anyone_reported = false;
  for (const Member& member : members_) {
    for (const std::string& model : member.models) by_model_.try_emplace(model);
    adapters_.insert(member.adapters.begin(), member.adapters.end());
    bases_.insert(member.bases.begin(), member.bases.end());
    const bool being_asked = member.state == WorkerState::kProbing && !member.reported;
    may_know_ = may_know_ || member.any_model || being_asked;
    anyone_reported = anyone_reported || member.reported;
  }
  for (const Member& member : members_) {
    if (member.state != WorkerState::kReady) continue;
    routable_.push_back(&member);
    if (member.any_model) {
      any_model_.push_back(&member);
      for (auto& [model, serving] : by_model_) serving.push_back(&member);
      continue;
    }
    for (const std::string& model : member.models) by_model_[model].push_back(&member);
  }
  may_know_ = may_know_ || !anyone_reported;
}

const std::vector<const Member*>& FleetSnapshot::Serving(std::string_view model) const {
  if (model.empty()) return routable_;
  const auto found = by_model_.find(model);
  return found == by_model_.end() ? any_model_ : found->second;
}

std::string_view FleetSnapshot::BaseOf(std::string_view model) const {
  const auto found = bases_.find(model);
  return found == bases_.end() ? std::string_view() : found->second;
}

const Member* FleetSnapshot::Find(WorkerId id) const {
  const auto at = std::find_if(members_.begin(), members_.end(),
                               [id](const Member& m) { return m.worker->id() == id; });
  return at == members_.end() ? nullptr : &*at;
}

bool FleetSnapshot::KnowsModel(std::string_view model) const {
  return model.empty() || may_know_ || by_model_.contains(model);
}

bool FleetSnapshot::MaySoonServe(std::string_view model) const {
  return std::ranges::any_of(members_, [&](const Member& member) {
    if (member.state != WorkerState::kProbing) return false;
    const bool open = model.empty() || member.any_model || !member.reported;
    return open || std::ranges::binary_search(member.models, model);
  });
}

Fleet::Fleet(const BreakerOptions& breaker)
    : breaker_(breaker), snapshot_(std::make_shared<FleetSnapshot>(std::vector<Member>())) {}

Result<std::shared_ptr<Worker>> Fleet::Add(WorkerSpec spec) {
  const std::lock_guard lock(mutex_);
  if (members_.size() >= kMaxWorkers) {
    return Fail(Blame::kOverload, "the fleet has {} workers already, which is the limit",
                kMaxWorkers);
  }
  if (Find(WorkerId::OfUrl(spec.url)) != nullptr) {
    return Fail(Blame::kCaller, "worker {} is in the fleet already", spec.url);
  }
  auto worker = std::make_shared<Worker>(std::move(spec), breaker_);
  members_.push_back(Member{.worker = worker});
  Publish();
  return worker;
}

bool Fleet::Remove(WorkerId id) {
  const std::lock_guard lock(mutex_);
  const size_t removed =
      std::erase_if(members_, [id](const Member& m) { return m.worker->id() == id; });
  standings_.erase(id);
  if (removed > 0) Publish();
  return removed > 0;
}

// Health comes first: a worker that is away is nobody's decision.
void Fleet::Show(const Standing& standing, Member& member) {
  const WorkerState before = member.state;
  const bool well = standing.healthy;
  if (standing.asked && !well) {
    member.state = WorkerState::kUnhealthy;
    member.cause = standing.illness;
  } else if (standing.membership == Membership::kRefused && well) {
    member.state = WorkerState::kExcluded;
    member.cause = standing.refusal;
  } else {
    const bool ready = well && standing.membership == Membership::kAdmitted;
    member.state = ready ? WorkerState::kReady : WorkerState::kProbing;
    member.cause.clear();
  }
  if (member.state != WorkerState::kReady || before == WorkerState::kReady) return;
  ++member.lives;
  member.worker->usage.Reset();
}

void Fleet::SetHealthy(WorkerId id) {
  const std::lock_guard lock(mutex_);
  Member* const member = Find(id);
  if (member == nullptr) return;
  Standing& standing = standings_[id];
  if (standing.healthy) return;
  standing.healthy = standing.asked = true;
  Show(standing, *member);
  Publish();
}

void Fleet::SetUnhealthy(WorkerId id, std::string cause) {
  const std::lock_guard lock(mutex_);
  Member* const member = Find(id);
  if (member == nullptr) return;
  Standing& standing = standings_[id];
  if (standing.asked && !standing.healthy && standing.illness == cause) return;
  standing.healthy = false;
  standing.asked = true;
  standing.illness = std::move(cause);
  Show(standing, *member);
  Publish();
}

void Fleet::SetMembership(WorkerId id, Membership membership, std::string cause) {
  const std::lock_guard lock(mutex_);
  Member* const member = Find(id);
  if (member == nullptr) return;
  Standing& standing = standings_[id];
  if (standing.membership == membership && standing.refusal == cause) return;
  standing.membership = membership;
  standing.refusal = std::move(cause);
  Show(standing, *member);
  Publish();
}

void Fleet::SetModels(WorkerId id, ModelReport report) {
  const std::lock_guard lock(mutex_);
  Member* const member = Find(id);
  if (member == nullptr) return;
  // Cards are not compared: vLLM stamps them anew each time it is asked.
  const bool same = member->reported && member->models == report.models &&
                    member->adapters == report.adapters && member->bases == report.bases &&
                    member->any_model == report.any_model;
  if (same) return;
  member->reported = true;
  member->models = std::move(report.models);
  member->model_cards = std::move(report.cards);
  member->adapters = std::move(report.adapters);
  member->bases = std::move(report.bases);
  member->any_model = report.any_model;
  Publish();
}

std::shared_ptr<const FleetSnapshot> Fleet::Current() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

Member* Fleet::Find(WorkerId id) {
  const auto at = std::find_if(members_.begin(), members_.end(),
                               [id](const Member& m) { return m.worker->id() == id; });
  return at == members_.end() ? nullptr : &*at;
}

void Fleet::Publish() {
  snapshot_ = std::make_shared<FleetSnapshot>(members_);
  version_.fetch_add(1, std::memory_order_release);
}

}  // namespace fathom
