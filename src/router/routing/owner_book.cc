#include "router/routing/owner_book.h"

#include <algorithm>

#include "router/index/lost_blocks.h"

namespace fathom {

OwnerBook::Owner OwnerBook::Find(const FleetSnapshot& fleet, std::string_view model,
                                 uint32_t owner) {
  const uint64_t layout = fleet.pulse().layout.load(std::memory_order_acquire);
  if (fleet_ != fleet.number() || layout_ != layout) {
    fleet_ = fleet.number();
    layout_ = layout;
    Read(fleet);
  }
  const auto alike = std::ranges::equal_range(entries_, owner, {}, &Entry::owner);
  for (const Entry& entry : alike) {
    const Member& member = fleet.members()[entry.member];
    if (member.Serves(model)) return {entry.rank, member.state == WorkerState::kReady};
  }
  return {};
}

void OwnerBook::Read(const FleetSnapshot& fleet) {
  entries_.clear();
  uint32_t position = 0;
  for (const Member& member : fleet.members()) {
    member.worker->ranks.ForEach([&](Rank& rank) {
      entries_.push_back(
          {LostBlocks::OwnerOf(member.worker->id().value(), rank.number), position, &rank});
    });
    ++position;
  }
  std::ranges::sort(entries_, {}, [](const Entry& e) { return std::pair(e.owner, e.member); });
}

}  // namespace fathom
