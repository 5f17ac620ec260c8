#include "router/fleet/load_block.h"

#include <algorithm>
#include <bit>

namespace fathom {

std::optional<LoadFloor> LoadBlock::Of(const Floor& floor) {
  if (floor.ranks.load(std::memory_order_relaxed) == 0) return std::nullopt;
  return LoadFloor{.backlog = floor.backlog.load(std::memory_order_relaxed),
                   .context = floor.context.load(std::memory_order_relaxed),
                   .requests = floor.requests.load(std::memory_order_relaxed)};
}

std::optional<size_t> LoadBlock::Enter(const LoadShare& share) {
  const std::lock_guard lock(mutex_);
  const auto place = static_cast<size_t>(std::countr_one(taken_));
  if (place >= kMost) return std::nullopt;
  taken_ |= uint64_t{1} << place;
  shares_[place] = share;
  Include(share);
  ranks_.fetch_add(1, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_release);
  return place;
}

void LoadBlock::Update(size_t place, const LoadShare& share) {
  const std::lock_guard lock(mutex_);
  const LoadShare was = std::exchange(shares_[place], share);
  Include(share);
  Exclude(was);
  changes_.fetch_add(1, std::memory_order_release);
}

void LoadBlock::Leave(size_t place) {
  const std::lock_guard lock(mutex_);
  taken_ &= ~(uint64_t{1} << place);
  Exclude(shares_[place]);
  ranks_.fetch_sub(1, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_release);
}

void LoadBlock::Count(const LoadShare& share, int64_t times) {
  FloorOf(share).ranks.fetch_add(static_cast<uint32_t>(times), std::memory_order_relaxed);
  if (share.waiting > 0) {
    waiting_.fetch_add(static_cast<uint64_t>(times * share.waiting), std::memory_order_relaxed);
  }
  if (share.silent) silent_.fetch_add(static_cast<uint32_t>(times), std::memory_order_relaxed);
}

void LoadBlock::Include(const LoadShare& share) {
  Floor& floor = FloorOf(share);
  const bool first = floor.ranks.load(std::memory_order_relaxed) == 0;
  const auto lower = [first](auto& least, auto value) {
    if (first || value < least.load(std::memory_order_relaxed)) {
      least.store(value, std::memory_order_relaxed);
    }
  };
  lower(floor.backlog, share.backlog);
  lower(floor.context, share.context);
  lower(floor.requests, share.requests);
  Count(share, 1);
}

void LoadBlock::Exclude(const LoadShare& share) {
  Count(share, -1);
  Floor& floor = FloorOf(share);
  const auto was_least = [](const auto& least, auto value) {
    return value <= least.load(std::memory_order_relaxed);
  };
  if (was_least(floor.backlog, share.backlog) || was_least(floor.context, share.context) ||
      was_least(floor.requests, share.requests)) {
    Recount(floor, share.backlog > 0);
  }
}

void LoadBlock::Recount(Floor& floor, bool queued) {
  constexpr uint64_t kMany = std::numeric_limits<uint64_t>::max();
  LoadFloor least{std::numeric_limits<double>::max(), kMany, std::numeric_limits<uint32_t>::max()};
  for (uint64_t left = taken_; left != 0; left &= left - 1) {
    const LoadShare& share = shares_[static_cast<size_t>(std::countr_zero(left))];
    if ((share.backlog > 0) != queued) continue;
    least.backlog = std::min(least.backlog, share.backlog);
    least.context = std::min(least.context, share.context);
    least.requests = std::min(least.requests, share.requests);
  }
  floor.backlog.store(least.backlog, std::memory_order_relaxed);
  floor.context.store(least.context, std::memory_order_relaxed);
  floor.requests.store(least.requests, std::memory_order_relaxed);
}

std::unique_ptr<LoadPlace> LoadBoard::Find(const std::string& group, const LoadShare& share) {
  const std::lock_guard lock(mutex_);
  std::vector<std::weak_ptr<LoadBlock>>& blocks = groups_[group];
  std::erase_if(blocks, [](const auto& block) { return block.expired(); });
  // The last one is the likeliest to have room.
  for (size_t i = blocks.size(); i-- > 0;) {
    auto block = blocks[i].lock();
    const auto place = block ? block->Enter(share) : std::nullopt;
    if (place) return std::make_unique<LoadPlace>(std::move(block), *place);
  }
  auto block = std::make_shared<LoadBlock>();
  blocks.push_back(block);
  if (groups_.size() > 1 && blocks.size() == 1) {
    std::erase_if(groups_, [&](const auto& entry) {
      return entry.first != group &&
             std::ranges::all_of(entry.second, [](const auto& other) { return other.expired(); });
    });
  }
  const size_t place = *block->Enter(share);
  return std::make_unique<LoadPlace>(std::move(block), place);
}

}  // namespace fathom
