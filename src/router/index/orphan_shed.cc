#include "router/index/orphan_shed.h"

#include <algorithm>

namespace fathom {

StoredRun OrphanShed::Orphan::Run() const {
  return {.parent = parent,
          .hashes = hashes,
          .tokens = tokens,
          .locals = locals,
          .extra = extra,
          .part = part,
          .kind = kind,
          .window = window};
}

size_t OrphanShed::Orphan::bytes() const {
  // The 32 bytes per block are its entry in containing_.
  return sizeof(Orphan) + 64 + hashes.size() * (sizeof(uint64_t) + 32) +
         tokens.size() * sizeof(TokenId) + locals.size() * sizeof(uint64_t) +
         extra.size() * sizeof(ExtraKey);
}

size_t OrphanShed::Park(const StoredRun& run, TimePoint now) {
  const size_t blocks = run.hashes.size();
  if (blocks == 0 || blocks > kMostBlocks) return blocks;
  size_t dropped = 0;
  while (blocks_ + blocks > kMostBlocks) dropped += DropOldest();
  Orphan orphan{.parent = *run.parent,
                .hashes = {run.hashes.begin(), run.hashes.end()},
                .tokens = {run.tokens.begin(), run.tokens.end()},
                .locals = {run.locals.begin(), run.locals.end()},
                .extra = {run.extra.begin(), run.extra.end()},
                .part = run.part,
                .kind = run.kind,
                .window = run.window,
                .left = {},
                .since = now};
  if (!meter_.TryAdd(orphan.bytes())) return dropped + blocks;
  if (oldest_first_.size() > 2 * orphans_.size() + 64) {
    std::erase_if(oldest_first_, [this](uint64_t old) { return !orphans_.contains(old); });
  }
  const uint64_t id = next_id_++;
  waiting_for_.emplace(orphan.parent, id);
  for (const uint64_t hash : orphan.hashes) containing_.emplace(hash, id);
  blocks_ += blocks;
  oldest_first_.push_back(id);
  orphans_.emplace(id, std::move(orphan));
  return dropped;
}

void OrphanShed::Forget(ByHash& map, uint64_t key, uint64_t id) {
  const auto [begin, end] = map.equal_range(key);
  const auto found =
      std::find_if(begin, end, [id](const auto& entry) { return entry.second == id; });
  if (found != end) map.erase(found);
}

OrphanShed::Orphan OrphanShed::TakeOut(uint64_t id) {
  const auto found = orphans_.find(id);
  Orphan orphan = std::move(found->second);
  orphans_.erase(found);
  Forget(waiting_for_, orphan.parent, id);
  for (const uint64_t hash : orphan.hashes) Forget(containing_, hash, id);
  blocks_ -= orphan.hashes.size();
  meter_.Subtract(orphan.bytes());
  return orphan;
}

std::optional<OrphanShed::Orphan> OrphanShed::Adopt(uint64_t parent) {
  const auto found = waiting_for_.find(parent);
  if (found == waiting_for_.end()) return std::nullopt;
  return TakeOut(found->second);
}

bool OrphanShed::Remove(uint64_t hash, const CachePart& part) {
  const auto [begin, end] = containing_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    Orphan& orphan = orphans_.at(it->second);
    if (orphan.part != part) continue;
    const auto stored = std::ranges::count(orphan.hashes, hash);
    if (std::ranges::count(orphan.left, hash) >= stored) continue;
    orphan.left.push_back(hash);
    if (orphan.left.size() == orphan.hashes.size()) TakeOut(it->second);
    return true;
  }
  return false;
}

size_t OrphanShed::DropOldest() {
  while (!oldest_first_.empty()) {
    const uint64_t id = oldest_first_.front();
    oldest_first_.pop_front();
    if (orphans_.contains(id)) return TakeOut(id).hashes.size();
  }
  return 0;
}

size_t OrphanShed::Expire(TimePoint now) {
  size_t gone = 0;
  while (!oldest_first_.empty()) {
    const auto found = orphans_.find(oldest_first_.front());
    if (found != orphans_.end() && found->second.since + kPatience > now) break;
    if (found != orphans_.end()) gone += TakeOut(found->first).hashes.size();
    oldest_first_.pop_front();
  }
  return gone;
}

void OrphanShed::Clear() {
  for (const auto& [id, orphan] : orphans_) meter_.Subtract(orphan.bytes());
  orphans_.clear();
  waiting_for_.clear();
  containing_.clear();
  oldest_first_.clear();
  blocks_ = 0;
}

}  // namespace fathom
