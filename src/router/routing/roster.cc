#include "router/routing/roster.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <unordered_map>

namespace fathom {
namespace {

uint64_t HashOf(const RankLabel& rank) {
  return (rank.worker * 0x9e3779b97f4a7c15u + rank.dp_rank) * 0xbf58476d1ce4e5b9u >> 32;
}

}  // namespace

void Roster::Assign(std::span<const Place> places, Blocks blocks) {
  places_.clear();
  known_.clear();
  parts_.clear();
  found_.clear();
  // Blocks in the order in which their first rank appears.
  std::unordered_map<const LoadBlock*, uint32_t> numbers;
  std::vector<std::vector<Place>> members;
  for (const Place& place : places) {
    auto block = blocks == Blocks::kUsed ? place.rank->load.block() : nullptr;
    const auto [at, added] = numbers.try_emplace(block.get(), parts_.size());
    if (added) {
      parts_.push_back({.block = std::move(block)});
      members.emplace_back();
    }
    members[at->second].push_back(place);
  }
  for (uint32_t part = 0; part < parts_.size(); ++part) {
    parts_[part].begin = size();
    for (const Place& place : members[part]) {
      places_.push_back(place);
      known_.push_back(
          {.label = place.label(), .capacity = place.worker->report.kv_tokens(), .part = part});
    }
    parts_[part].end = size();
  }
  Index();
}

bool Roster::Has(std::span<const Place> places) const {
  return std::ranges::equal(places, known_, [&](const Place& place, const Known& known) {
    const Place& ours = places_[static_cast<size_t>(&known - known_.data())];
    return place.rank == ours.rank && place.worker == ours.worker && place.label() == known.label;
  });
}

void Roster::Index() {
  slots_.assign(std::bit_ceil(2 * places_.size() + 1), kNone);
  for (uint32_t position = 0; position < size(); ++position) {
    size_t at = HashOf(known_[position].label) & (slots_.size() - 1);
    while (slots_[at] != kNone) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = position;
  }
}

uint32_t Roster::Find(const RankLabel& rank) const {
  if (slots_.empty()) return kNone;
  for (size_t at = HashOf(rank) & (slots_.size() - 1); slots_[at] != kNone;
       at = (at + 1) & (slots_.size() - 1)) {
    if (known_[slots_[at]].label == rank) return slots_[at];
  }
  return kNone;
}

void Roster::StartTurn() {
  ++turn_;
  excluded_ = 0;
}

void Roster::Exclude(uint32_t position) {
  if (position == kNone || IsExcluded(position)) return;
  known_[position].excluded = turn_;
  parts_[known_[position].part].excluded = turn_;
  ++excluded_;
}

bool Roster::SameRanks(std::span<const CacheReader::Found> all) const {
  return std::ranges::equal(all, found_, {}, &CacheReader::Found::rank, &FoundRank::label);
}

// Ranks that are no longer in the index hold nothing.
void Roster::Recognise(std::span<const CacheReader::Found> all) {
  for (Known& known : known_) known.holding = {};
  for (Part& part : parts_) part.outdated = true;
  found_.clear();
  for (const CacheReader::Found& found : all) found_.push_back({found.rank, Find(found.rank)});
}

void Roster::Note(uint32_t position, const Holding& holding) {
  Known& known = known_[position];
  if (known.holding == holding) return;
  known.holding = holding;
  parts_[known.part].outdated = true;
}

uint64_t Roster::FreeOf(const Known& known) {
  if (known.capacity == 0) return std::numeric_limits<uint64_t>::max();
  return known.capacity - std::min(known.capacity, known.holding.held);
}

uint64_t Roster::MostFree(uint32_t number) {
  Part& part = parts_[number];
  if (!std::exchange(part.outdated, false)) return part.most_free;
  part.most_free = 0;
  for (uint32_t i = part.begin; i < part.end; ++i) {
    part.most_free = std::max(part.most_free, FreeOf(known_[i]));
  }
  return part.most_free;
}

}  // namespace fathom
