// Up to 32 lanes that share a table, and the data about them that a lookup needs.
//
// Most ranks have one lane: full attention, on the device. As long as such a lane is unbroken, a
// block that it holds proves that it holds all blocks before it, so its depth can be found by
// binary search; such lanes are `plain`. Ranks with several lanes (tiers, cache groups) are
// described by a layout.
//
// Threads  Readers load the atomics inside a pin. Lanes are assigned under the index's mutex. The
//          bits of a lane change on the writer thread of its rank.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "router/index/holding.h"
#include "router/index/lane_table.h"

namespace fathom {

// A rank with several lanes.
struct LayeredRank {
  static constexpr size_t kMostGroups = 8;

  struct Group {
    // By tier: the lanes of this tier and of the faster ones.
    std::array<Lanes, kTiers> lanes{};
    uint32_t blocks_needed = 0;  // before a boundary, for a window group; 0: all
  };
  uint32_t rank = 0;
  uint32_t groups = 0;
  std::array<Group, kMostGroups> group;
  Lanes all_lanes = 0;
  bool device_only = true;  // then every tier has the same depth
};

struct BankLayout {
  static constexpr size_t kMostRanks = LaneTable::kLanes;
  std::vector<LayeredRank> ranks;
  Lanes lanes = 0;
};

struct Bank {
  Bank(Epochs& epochs, MemoryMeter& meter, uint64_t secret) : table(epochs, meter, secret) {
    for (auto& rank : rank_of) rank.store(0, std::memory_order_relaxed);
  }
  ~Bank() { delete layout.load(std::memory_order_relaxed); }
  Bank(const Bank&) = delete;
  Bank& operator=(const Bank&) = delete;

  LaneTable table;
  // Lanes that are the only lane of their rank. Set (release) after rank_of; pairs with the acquire
  // load in IndexReader::MatchBank().
  std::atomic<Lanes> single{0};
  // Of these, the unbroken ones. Cleared (release) before a block in the middle is removed, set
  // after the last gap is filled; pairs with the acquire load in IndexReader::MatchBank().
  std::atomic<Lanes> plain{0};
  std::array<std::atomic<uint32_t>, LaneTable::kLanes> rank_of;
  std::atomic<const BankLayout*> layout{nullptr};  // retired through the epochs

  Lanes used = 0;                    // assigned lanes; guarded by the index's mutex
  std::vector<LayeredRank> layered;  // source of `layout`; guarded by the index's mutex

  size_t free_lanes() const { return LaneTable::kLanes - static_cast<size_t>(std::popcount(used)); }
};

}  // namespace fathom
