#include "router/fleet/fleet.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fathom {
namespace {

// An engine may serve any number of adapters: a few names are enough to recognise it.
std::string WhyOutside(const std::vector<std::string>& models) {
  constexpr size_t kNamed = 3;
  constexpr size_t kLongest = 100;
  std::string why = "serves none of --models";
  for (size_t i = 0; i < std::min(models.size(), kNamed); ++i) {
    why.append(i == 0 ? ": it serves " : ", ").append(models[i], 0, kLongest);
  }
  if (models.size() > kNamed) why.append(", ...");
  return why;
}

}  // namespace

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
    case WorkerState::kUnready:
      return "unready";
    case WorkerState::kDraining:
      return "draining";
    case WorkerState::kOutside:
      return "outside";
  }
  return "unknown";
}

bool Answers(WorkerState state) {
  return state == WorkerState::kReady || state == WorkerState::kExcluded;
}

FleetSnapshot::FleetSnapshot(std::vector<Member> members) : pulse_(std::make_shared<FleetPulse>()) {
  auto directory = std::make_shared<Directory>();
  for (Member& member : members) {
    member.joined = members_.size();
    directory->emplace_back(member.worker->id(), member.joined);
    members_.push_back(std::make_shared<const Member>(std::move(member)));
    lists_.Add(*members_.back());
  }
  std::ranges::sort(*directory);
  directory_ = std::move(directory);
}

uint64_t FleetSnapshot::NextNumber() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::optional<size_t> FleetSnapshot::Find(const Members& members, const Directory& directory,
                                          WorkerId id) {
  const auto named = std::ranges::lower_bound(directory, id, {}, &Directory::value_type::first);
  if (named == directory.end() || named->first != id) return std::nullopt;
  const auto at = std::ranges::lower_bound(members, named->second, {},
                                           [](const auto& member) { return member->joined; });
  return static_cast<size_t>(at - members.begin());
}

const Member* FleetSnapshot::Find(WorkerId id) const {
  const auto position = Find(members_, *directory_, id);
  return position ? members_[*position].get() : nullptr;
}

// Ids are hashes of URLs.
uint64_t FleetSnapshot::RoutableSet() const {
  uint64_t sum = 0;
  for (const Member* const member : lists_.routable()) sum += member->worker->id().value();
  return sum;
}

std::string_view FleetSnapshot::NameServed(std::string_view model) const {
  const auto& serving = Serving(model);
  const bool named = !model.empty() || serving.empty() || serving.front()->models.empty();
  return named ? model : std::string_view(serving.front()->models.front());
}

bool FleetSnapshot::MaySoonServe(std::string_view model) const {
  return std::ranges::any_of(members(), [&](const Member& member) {
    return member.state == WorkerState::kProbing && (!member.reported || member.Serves(model));
  });
}

Fleet::Fleet(const BreakerOptions& breaker, size_t max_workers, ModelSlice slice)
    : max_workers_(max_workers), slice_(std::move(slice)), breaker_(breaker) {}

Result<std::shared_ptr<Worker>> Fleet::Add(WorkerSpec spec) {
  const std::lock_guard lock(mutex_);
  if (members_.size() >= max_workers_) {
    return Fail(Blame::kOverload, "the fleet already has {} workers, which is the limit",
                max_workers_);
  }
  if (Find(WorkerId::OfUrl(spec.url))) {
    return Fail(Blame::kCaller, "worker {} is already in the fleet", spec.url);
  }
  auto worker = std::make_shared<Worker>(std::move(spec), breaker_, pulse_);
  members_.push_back(std::make_shared<const Member>(
      Member{.worker = worker, .joined = ++joined_, .followed = slice_.whole()}));
  lists_.Add(*members_.back());
  auto directory = std::make_shared<FleetSnapshot::Directory>(*directory_);
  const std::pair entry(worker->id(), joined_);
  directory->insert(std::ranges::lower_bound(*directory, entry), entry);
  directory_ = std::move(directory);
  Publish();
  return worker;
}

bool Fleet::Remove(WorkerId id) {
  const std::lock_guard lock(mutex_);
  const auto position = Find(id);
  if (!position) return false;
  lists_.Remove(*members_[*position]);
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(*position));
  standings_.erase(id);
  auto directory = std::make_shared<FleetSnapshot::Directory>(*directory_);
  std::erase_if(*directory, [&](const auto& entry) { return entry.first == id; });
  directory_ = std::move(directory);
  Publish();
  return true;
}

// The source's word comes first: what is about to end, or has not begun, is no fault of the fleet.
// A worker that other replicas serve is no concern of this one, healthy or not. Health comes before
// membership: an unreachable worker is shown as unhealthy even if it is refused.
void Fleet::Show(const Standing& standing, Member& member) {
  const bool answered = Answers(member.checked);
  const bool well = standing.healthy;
  const bool outside = !standing.outside.empty();
  member.held = well && !outside && standing.membership == Membership::kHeld;
  if (outside) {
    member.checked = WorkerState::kOutside;
    member.cause = standing.outside;
  } else if (standing.asked && !well) {
    member.checked = WorkerState::kUnhealthy;
    member.cause = standing.illness;
  } else if (standing.membership == Membership::kRefused && well) {
    member.checked = WorkerState::kExcluded;
    member.cause = standing.refusal;
  } else {
    const bool ready = well && standing.membership == Membership::kAdmitted && !standing.held;
    member.checked = ready ? WorkerState::kReady : WorkerState::kProbing;
    member.cause.clear();
  }
  member.state = member.checked;
  if (const WorkerOrigin& origin = *member.origin; origin.says != SourceSays::kServe) {
    const bool drains = origin.says == SourceSays::kDrain;
    member.state = drains ? WorkerState::kDraining : WorkerState::kUnready;
    member.cause = origin.because;
  }
  if (!Answers(member.checked) || answered) return;
  ++member.lives;
  member.worker->usage.Reset();
  member.worker->ranks.Recover();
}

void Fleet::SetHealthy(WorkerId id) {
  const std::lock_guard lock(mutex_);
  const auto position = Find(id);
  if (!position) return;
  Standing& standing = standings_[id];
  if (standing.healthy) return;
  standing.healthy = standing.asked = true;
  Change(*position, [&](Member& member) { Show(standing, member); });
}

void Fleet::SetUnhealthy(WorkerId id, std::string cause) {
  const std::lock_guard lock(mutex_);
  const auto position = Find(id);
  if (!position) return;
  Standing& standing = standings_[id];
  if (standing.asked && !standing.healthy && standing.illness == cause) return;
  standing.healthy = false;
  standing.asked = true;
  standing.illness = std::move(cause);
  Change(*position, [&](Member& member) { Show(standing, member); });
}

void Fleet::SetMembership(WorkerId id, Membership membership, std::string cause) {
  const std::lock_guard lock(mutex_);
  const auto position = Find(id);
  if (!position) return;
  Standing& standing = standings_[id];
  if (standing.membership == membership && standing.refusal == cause) return;
  standing.membership = membership;
  standing.refusal = std::move(cause);
  Change(*position, [&](Member& member) { Show(standing, member); });
}

void Fleet::Hold(WorkerId id) {
  const std::lock_guard lock(mutex_);
  const auto position = Find(id);
  if (!position) return;
  Standing& standing = standings_[id];
  if (std::exchange(standing.held, true)) return;
  Change(*position, [&](Member& member) { Show(standing, member); });
}

void Fleet::Release(WorkerId id) {
  const std::lock_guard lock(mutex_);
  const auto position = Find(id);
  if (!position) return;
  Standing& standing = standings_[id];
  if (!std::exchange(standing.held, false)) return;
  Change(*position, [&](Member& member) { Show(standing, member); });
}

void Fleet::SetOrigin(WorkerId id, WorkerOrigin origin) {
  const std::lock_guard lock(mutex_);
  const auto position = Find(id);
  if (!position || *members_[*position]->origin == origin) return;
  Change(*position, [&](Member& member) {
    member.origin = std::make_shared<const WorkerOrigin>(std::move(origin));
    Show(standings_[id], member);
  });
}

Fleet::ModelReport Fleet::Narrow(ModelReport report) const {
  if (slice_.whole() || report.any_model) return report;
  ModelReport kept;
  for (size_t i = 0; i < report.models.size(); ++i) {
    if (!slice_.Contains(report.models[i])) {
      kept.others.push_back(std::move(report.models[i]));
      continue;
    }
    kept.models.push_back(std::move(report.models[i]));
    if (i < report.cards.size()) kept.cards.push_back(std::move(report.cards[i]));
  }
  const auto followed = [&](const std::string& name) { return slice_.Contains(name); };
  std::ranges::copy_if(report.adapters, std::back_inserter(kept.adapters), followed);
  for (auto& [adapter, base] : report.bases) {
    if (followed(adapter)) kept.bases.emplace(adapter, std::move(base));
  }
  kept.outside = kept.models.empty();
  return kept;
}

void Fleet::SetModels(WorkerId id, ModelReport report) {
  const std::lock_guard lock(mutex_);
  const auto position = Find(id);
  if (!position) return;
  Standing& standing = standings_[id];
  std::string outside = report.outside ? WhyOutside(report.others) : "";
  // Cards are not compared: vLLM puts a new timestamp into each answer.
  const Member& was = *members_[*position];
  const bool same = was.reported && was.models == report.models &&
                    was.adapters == report.adapters && was.bases == report.bases &&
                    was.any_model == report.any_model && standing.outside == outside;
  if (same) return;
  standing.outside = std::move(outside);
  // Workers with the same models are candidates for the same requests.
  std::string group;
  for (const std::string& model : report.models) group.append(model).push_back('\n');
  was.worker->ranks.Stand(board_, std::move(group));
  Change(*position, [&](Member& member) {
    member.reported = true;
    member.models = std::move(report.models);
    member.model_cards = std::move(report.cards);
    member.adapters = std::move(report.adapters);
    member.bases = std::move(report.bases);
    member.any_model = report.any_model;
    member.followed = !report.outside;
    Show(standing, member);
  });
}

std::shared_ptr<const FleetSnapshot> Fleet::Current() const {
  const std::lock_guard lock(mutex_);
  if (snapshot_ == nullptr) {
    snapshot_.reset(new FleetSnapshot(members_, directory_, lists_, pulse_));
  }
  return snapshot_;
}

std::optional<size_t> Fleet::Find(WorkerId id) const {
  return FleetSnapshot::Find(members_, *directory_, id);
}

// Snapshots share their members, so a changed one is another one.
void Fleet::Change(size_t position, const std::function<void(Member&)>& change) {
  auto next = std::make_shared<Member>(*members_[position]);
  change(*next);
  lists_.Remove(*members_[position]);
  members_[position] = std::move(next);
  lists_.Add(*members_[position]);
  Publish();
}

void Fleet::Publish() {
  snapshot_ = nullptr;
  version_.fetch_add(1, std::memory_order_release);
}

}  // namespace fathom
