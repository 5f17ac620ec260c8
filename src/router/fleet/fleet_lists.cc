#include "router/fleet/fleet_lists.h"

#include <algorithm>

#include "router/fleet/fleet.h"

namespace fathom {
namespace {

using List = std::shared_ptr<const FleetLists::Serving>;

size_t& Shift(size_t& count, int times) {
  return count = static_cast<size_t>(static_cast<int64_t>(count) + times);
}

void Insert(List& list, const Member& member) {
  auto next = std::make_shared<FleetLists::Serving>();
  next->reserve(list->size() + 1);
  const auto at = std::ranges::upper_bound(*list, member.joined, {}, &Member::joined);
  next->assign(list->begin(), at);
  next->push_back(&member);
  next->insert(next->end(), at, list->end());
  list = std::move(next);
}

void Erase(List& list, const Member& member) {
  auto next = std::make_shared<FleetLists::Serving>(*list);
  const auto at = std::ranges::lower_bound(*next, member.joined, {}, &Member::joined);
  if (at != next->end() && (*at)->joined == member.joined) next->erase(at);
  list = std::move(next);
}

bool IsBeingAsked(const Member& member) {
  return (member.state == WorkerState::kProbing || member.state == WorkerState::kUnready) &&
         !member.reported;
}

}  // namespace

void FleetLists::Add(const Member& member) {
  for (const std::string& model : member.models) {
    Named& named = models_[model];
    if (named.members++ == 0) named.serving = any_model_;
  }
  Count(member, 1);
  Apply(member, Insert);
}

void FleetLists::Remove(const Member& member) {
  Apply(member, Erase);
  Count(member, -1);
  for (const std::string& model : member.models) {
    const auto named = models_.find(model);
    if (--named->second.members == 0) models_.erase(named);
  }
}

void FleetLists::Apply(const Member& member,
                       void (*change)(std::shared_ptr<const Serving>&, const Member&)) {
  if (member.state != WorkerState::kReady) return;
  change(routable_, member);
  if (!member.any_model) {
    for (const std::string& model : member.models)
      change(models_.find(model)->second.serving, member);
    return;
  }
  change(any_model_, member);
  for (auto& [model, named] : models_) change(named.serving, member);
}

void FleetLists::Count(const Member& member, int times) {
  if (member.any_model) Shift(members_with_any_, times);
  if (IsBeingAsked(member)) Shift(being_asked_, times);
  if (member.reported) Shift(reported_, times);
  if (!member.adapters.empty() || !member.bases.empty()) CountAdapters(member, times);
}

void FleetLists::CountAdapters(const Member& member, int times) {
  auto next = std::make_shared<Adapters>(*adapters_);
  Adapters& adapters = *next;
  for (const std::string& name : member.adapters) Shift(adapters[name].members, times);
  for (const auto& [name, base] : member.bases) {
    auto& bases = adapters[name].bases;
    if (Shift(bases[base], times) == 0) bases.erase(base);
  }
  std::erase_if(adapters, [](const auto& adapter) {
    return adapter.second.members == 0 && adapter.second.bases.empty();
  });
  adapters_ = std::move(next);
}

bool FleetLists::IsAdapter(std::string_view model) const {
  const auto found = adapters_->find(model);
  return found != adapters_->end() && found->second.members > 0;
}

const FleetLists::Serving& FleetLists::Of(std::string_view model) const {
  if (model.empty()) return *routable_;
  const auto found = models_.find(model);
  return found == models_.end() ? *any_model_ : *found->second.serving;
}

bool FleetLists::Knows(std::string_view model) const {
  const bool may_know = members_with_any_ > 0 || being_asked_ > 0 || reported_ == 0;
  return model.empty() || may_know || models_.contains(model);
}

std::string_view FleetLists::BaseOf(std::string_view model) const {
  const auto found = adapters_->find(model);
  if (found == adapters_->end() || found->second.bases.empty()) return {};
  return found->second.bases.begin()->first;
}

}  // namespace fathom
