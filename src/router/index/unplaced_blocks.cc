#include "router/index/unplaced_blocks.h"

#include <algorithm>
#include <limits>

namespace fathom {

size_t UnplacedBlocks::Park(uint64_t hash, const CachePart& part, TimePoint now) {
  if (const auto known = Find(hash, part); known != blocks_.end()) {
    uint32_t& copies = known->second.copies;
    if (copies < std::numeric_limits<uint32_t>::max()) ++copies;
    return 0;
  }
  const size_t dropped = blocks_.size() == kMostBlocks ? DropOldest() : 0;
  if (!meter_.TryAdd(kBytes)) return dropped + 1;
  if (oldest_first_.size() > 2 * blocks_.size() + 64) {
    std::erase_if(oldest_first_, [this](const Turn& turn) { return Find(turn) == blocks_.end(); });
  }
  blocks_.emplace(hash, Block{.part = part, .number = next_number_});
  oldest_first_.push_back({hash, next_number_, now});
  ++next_number_;
  return dropped;
}

void UnplacedBlocks::Erase(Blocks::iterator block) {
  blocks_.erase(block);
  meter_.Subtract(kBytes);
}

UnplacedBlocks::Blocks::iterator UnplacedBlocks::Find(uint64_t hash, const CachePart& part) {
  const auto [begin, end] = blocks_.equal_range(hash);
  const auto found =
      std::find_if(begin, end, [&](const auto& entry) { return entry.second.part == part; });
  return found == end ? blocks_.end() : found;
}

UnplacedBlocks::Blocks::iterator UnplacedBlocks::Find(const Turn& turn) {
  const auto [begin, end] = blocks_.equal_range(turn.hash);
  const auto found = std::find_if(
      begin, end, [&](const auto& entry) { return entry.second.number == turn.number; });
  return found == end ? blocks_.end() : found;
}

std::optional<UnplacedBlocks::Block> UnplacedBlocks::TakeOut(uint64_t hash) {
  const auto found = blocks_.find(hash);
  if (found == blocks_.end()) return std::nullopt;
  const Block block = found->second;
  Erase(found);
  return block;
}

bool UnplacedBlocks::Remove(uint64_t hash, const CachePart& part) {
  const auto found = Find(hash, part);
  if (found == blocks_.end()) return false;
  if (--found->second.copies == 0) Erase(found);
  return true;
}

size_t UnplacedBlocks::DropOldest() {
  while (!oldest_first_.empty()) {
    const auto found = Find(oldest_first_.front());
    oldest_first_.pop_front();
    if (found == blocks_.end()) continue;
    Erase(found);
    return 1;
  }
  return 0;
}

size_t UnplacedBlocks::Expire(TimePoint now) {
  size_t gone = 0;
  while (!oldest_first_.empty()) {
    const auto found = Find(oldest_first_.front());
    const bool waits = found != blocks_.end();
    if (waits && oldest_first_.front().since + kPatience > now) break;
    if (waits) Erase(found);
    gone += waits ? 1 : 0;
    oldest_first_.pop_front();
  }
  return gone;
}

void UnplacedBlocks::Clear() {
  meter_.Subtract(blocks_.size() * kBytes);
  blocks_.clear();
  oldest_first_.clear();
}

}  // namespace fathom
