// A rank's namespaces and lanes.
#include <algorithm>

#include "router/index/prefix_index.h"
#include "router/index/rank_holdings.h"

namespace fathom {
namespace {

constexpr size_t kMostNamespaces = 65536;

}  // namespace

// --- namespaces ---------------------------------------------------------------------------------

void RankHoldings::ForgetNamespaces() {
  seeds_.assign(1, kKeySeed);
  name_spaces_.clear();
  name_spaces_.emplace(kKeySeed, 0);
  free_name_spaces_.clear();
}

// nullopt: too many namespaces are in use.
std::optional<uint16_t> RankHoldings::NameSpaceOf(uint64_t seed) {
  if (const auto found = name_spaces_.find(seed); found != name_spaces_.end()) return found->second;
  if (free_name_spaces_.empty() && seeds_.size() == kMostNamespaces) CollectNamespaces();
  uint16_t id = 0;
  if (!free_name_spaces_.empty()) {
    id = free_name_spaces_.back();
    free_name_spaces_.pop_back();
    seeds_[id] = seed;
  } else if (seeds_.size() < kMostNamespaces) {
    id = static_cast<uint16_t>(seeds_.size());
    seeds_.push_back(seed);
  } else {
    return std::nullopt;
  }
  name_spaces_.emplace(seed, id);
  return id;
}

// Namespaces have no reference counts; when the ids run out, a scan frees those without blocks. The
// scan visits every block, so it is repeated only after enough blocks were removed.
void RankHoldings::CollectNamespaces() {
  constexpr uint64_t kWorthwhile = 256;
  const uint64_t removed = counters_.removed.value();
  if (collected_at_ && removed < *collected_at_ + kWorthwhile) return;
  collected_at_ = removed;
  std::vector<bool> used(kMostNamespaces, false);
  used[0] = true;
  for (const auto& lane : lanes_) lane->ledger.MarkNamespaces(used);
  for (size_t id = 1; id < seeds_.size(); ++id) {
    if (used[id]) continue;
    name_spaces_.erase(seeds_[id]);
    free_name_spaces_.push_back(static_cast<uint16_t>(id));
  }
}

// --- lanes --------------------------------------------------------------------------------------

RankHoldings::Lane* RankHoldings::Find(CachePart part) const {
  for (const auto& lane : lanes_) {
    if (lane->part == part) return lane.get();
  }
  return nullptr;
}

bool RankHoldings::RoomForGroup(uint32_t group) const {
  std::vector<uint32_t> groups = {group};
  for (const auto& lane : lanes_) {
    if (std::ranges::find(groups, lane->part.group) == groups.end()) {
      groups.push_back(lane->part.group);
    }
  }
  return groups.size() <= LayeredRank::kMostGroups;
}

RankHoldings::Lane* RankHoldings::FindOrMake(const StoredRun& run) {
  if (Lane* const lane = Find(run.part)) return lane;
  if (lanes_.size() == kMostLanes || !RoomForGroup(run.part.group)) return nullptr;
  auto lane = std::make_unique<Lane>(index_.meter_, index_.secret_ ^ rank_);
  lane->part = run.part;
  lane->kind = run.kind;
  lane->window = run.window;
  lanes_.push_back(std::move(lane));
  if (!index_.GiveLane(*this)) lanes_.pop_back();
  return Find(run.part);
}

void RankHoldings::NoteUnsupported(const StoredRun& run) {
  counters_.unsupported.Add(run.hashes.size());
  if (std::ranges::find(unsupported_groups_, run.part.group) != unsupported_groups_.end()) return;
  if (unsupported_groups_.size() < kMostLanes) unsupported_groups_.push_back(run.part.group);
}

void RankHoldings::Announce(const Lane& lane, bool unbroken) {
  if (unbroken) {
    bank_->plain.fetch_or(lane.bit, std::memory_order_release);
  } else if ((bank_->plain.load(std::memory_order_relaxed) & lane.bit) != 0) {
    bank_->plain.fetch_and(~lane.bit, std::memory_order_release);
  }
}

void RankHoldings::Settle(const Lane& lane) {
  const bool unbroken = lane.tracked() && !lane.irregular && lane.ledger.ghosts() == 0;
  const bool said = (bank_->plain.load(std::memory_order_relaxed) & lane.bit) != 0;
  if (unbroken != said) Announce(lane, unbroken);
}

void RankHoldings::UpdateCounts() {
  size_t held = 0;
  size_t ghosts = 0;
  for (const auto& lane : lanes_) {
    held += lane->ledger.held_blocks();
    ghosts += lane->ledger.ghosts();
  }
  // The unsigned difference may wrap below zero; the sum over all ranks is still correct.
  index_.held_.fetch_add(held - counters_.held.value(), std::memory_order_relaxed);
  index_.labels_[rank_].held.store(held, std::memory_order_relaxed);
  counters_.held.Set(held);
  counters_.ghosts.Set(ghosts);
  counters_.orphans.Set(orphans_.blocks() + unplaced_.blocks());
  counters_.lanes.Set(lanes_.size());
  counters_.unsupported_groups.Set(unsupported_groups_.size());
}

}  // namespace fathom
