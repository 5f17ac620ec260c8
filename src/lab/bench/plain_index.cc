#include "lab/bench/plain_index.h"

#include <algorithm>
#include <bit>

#include "text/tokens/block_hash.h"

namespace fathom {
namespace {

constexpr uint64_t BitOf(uint32_t rank) { return uint64_t{1} << (rank % 64); }

void SetDepths(size_t lane, uint64_t ranks, std::span<uint32_t> depths, size_t depth) {
  for (; ranks != 0; ranks &= ranks - 1) {
    depths[lane * 64 + static_cast<size_t>(std::countr_zero(ranks))] = static_cast<uint32_t>(depth);
  }
}

}  // namespace

void PlainIndex::Change(const IndexOperation& operation) {
  const std::unique_lock lock(mutex_);
  switch (operation.kind) {
    case IndexOperation::Kind::kQuery:
      return;
    case IndexOperation::Kind::kStored:
      return Store(operation);
    case IndexOperation::Kind::kRemoved:
      return Remove(operation.rank, operation.words);
    case IndexOperation::Kind::kCleared:
      return Clear(operation.rank);
  }
}

void PlainIndex::Store(const IndexOperation& operation) {
  auto& held = held_[operation.rank];
  uint64_t before = 0;
  if (operation.parent) {
    const auto parent = held.find(*operation.parent);
    if (parent == held.end()) return;
    before = parent->second.key;
  }
  bool first = !operation.parent;
  for (size_t i = 0; i < operation.words.size(); i += 2) {
    const uint64_t local = operation.words[i + 1];
    const uint64_t key = first ? local : ChainKey(before, local);
    Held& block = held[operation.words[i]];
    block.key = key;
    ++block.copies;
    RankSet& ranks = ranks_[key];
    ranks.resize(lanes_);
    ranks[operation.rank / 64] |= BitOf(operation.rank);
    before = key;
    first = false;
  }
}

void PlainIndex::Remove(uint32_t rank, std::span<const uint64_t> hashes) {
  for (const uint64_t hash : hashes) {
    const auto found = held_[rank].find(hash);
    if (found == held_[rank].end() || --found->second.copies > 0) continue;
    Leave(rank, found->second.key);
    held_[rank].erase(found);
  }
}

void PlainIndex::Clear(uint32_t rank) {
  for (const auto& [hash, block] : held_[rank]) Leave(rank, block.key);
  held_[rank].clear();
}

void PlainIndex::Leave(uint32_t rank, uint64_t key) {
  const auto found = ranks_.find(key);
  if (found == ranks_.end()) return;
  found->second[rank / 64] &= ~BitOf(rank);
  if (std::ranges::all_of(found->second, [](uint64_t word) { return word == 0; })) {
    ranks_.erase(found);
  }
}

void PlainIndex::Match(std::span<const uint64_t> locals, std::span<uint32_t> depths) const {
  std::ranges::fill(depths, 0);
  const std::shared_lock lock(mutex_);
  RankSet alive(lanes_);
  uint64_t key = 0;
  size_t i = 0;
  for (bool any = true; any && i < locals.size(); i += any ? 1 : 0) {
    key = i == 0 ? locals[0] : ChainKey(key, locals[i]);
    const auto found = ranks_.find(key);
    if (found == ranks_.end()) break;
    if (i == 0) alive = found->second;
    any = false;
    for (size_t lane = 0; lane < lanes_; ++lane) {
      SetDepths(lane, alive[lane] & ~found->second[lane], depths, i);
      alive[lane] &= found->second[lane];
      any = any || alive[lane] != 0;
    }
  }
  for (size_t lane = 0; lane < lanes_; ++lane) SetDepths(lane, alive[lane], depths, i);
}

size_t PlainIndex::held_blocks() const {
  size_t blocks = 0;
  for (const auto& held : held_) blocks += held.size();
  return blocks;
}

}  // namespace fathom
