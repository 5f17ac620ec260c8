// Which block holds this hash? A fixed table for a fixed number of blocks.
//
// Linear probing with backward-shift deletion: no tombstones, so it is as fast after a million
// evictions as on the first day. Hashes are already random; their low bits pick the slot.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "lab/mock/kv_event.h"

namespace fathom {

class HashIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Room for `most` hashes at a load of at most one half.
  explicit HashIndex(size_t most) : slots_(std::bit_ceil(most * 2 + 2)), mask_(slots_.size() - 1) {}

  // The value stored for the hash, or kNone.
  uint32_t Find(BlockHash hash) const {
    for (size_t i = hash & mask_; slots_[i].value != kNone; i = (i + 1) & mask_) {
      if (slots_[i].hash == hash) return slots_[i].value;
    }
    return kNone;
  }

  // Inserts or replaces.
  void Set(BlockHash hash, uint32_t value) {
    size_t i = hash & mask_;
    while (slots_[i].value != kNone && slots_[i].hash != hash) i = (i + 1) & mask_;
    slots_[i] = {hash, value};
  }

  void Erase(BlockHash hash) {
    size_t hole = hash & mask_;
    while (slots_[hole].value != kNone && slots_[hole].hash != hash) hole = (hole + 1) & mask_;
    if (slots_[hole].value == kNone) return;
    for (size_t i = (hole + 1) & mask_; slots_[i].value != kNone; i = (i + 1) & mask_) {
      // An entry may move back into the hole unless that would put it before its own slot.
      if (((i - slots_[i].hash) & mask_) >= ((i - hole) & mask_)) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole].value = kNone;
  }

  void Clear() { slots_.assign(slots_.size(), Slot{}); }

 private:
  struct Slot {
    BlockHash hash = 0;
    uint32_t value = kNone;
  };

  std::vector<Slot> slots_;
  size_t mask_;
};

}  // namespace fathom
