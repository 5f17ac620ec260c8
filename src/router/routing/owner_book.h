// Which rank of the fleet is meant by the 32 bits that a lost block has of its owner?
//
// Threads  One.
// Memory   16 bytes per rank of the fleet.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "router/fleet/fleet.h"

namespace fathom {

class OwnerBook {
 public:
  struct Owner {
    Rank* rank = nullptr;
    bool routable = false;
  };
  // Only among workers that serve the model; blocks of other models are irrelevant.
  Owner Find(const FleetSnapshot& fleet, std::string_view model, uint32_t owner);

 private:
  struct Entry {
    uint32_t owner = 0;
    uint32_t member = 0;  // position in the fleet
    Rank* rank = nullptr;
  };
  void Read(const FleetSnapshot& fleet);

  std::vector<Entry> entries_;  // sorted by owner
  uint64_t fleet_ = 0;          // the snapshot that was read, by its number
  uint64_t layout_ = 0;
};

}  // namespace fathom
