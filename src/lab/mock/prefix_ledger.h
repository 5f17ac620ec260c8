// Had some engine this prefix before? Engines that share a ledger enter every full block that they
// compute, so that each can tell what it computes again though somebody once had it.
//
// A block is known by its chained hash, which says everything before it, its adapter and its salt.
//
// Memory   8 to 32 bytes per block; a block that does not fit `most` any more is not entered.
// Threads  Any.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "lab/mock/kv_event.h"

namespace fathom {

class PrefixLedger {
 public:
  static constexpr size_t kMost = 4'000'000;

  explicit PrefixLedger(size_t most = kMost);

  void Enter(std::span<const BlockHash> blocks);
  // How many of these are known before the first that is not.
  size_t Known(std::span<const BlockHash> blocks) const;
  // Something was not entered: what is known is too little from then on.
  bool full() const;

 private:
  // Where the hash is, or the empty slot where it would be.
  size_t SlotOf(BlockHash hash) const;
  void Grow();

  const size_t most_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<BlockHash> slots_;
  size_t used_ = 0;
  bool full_ = false;
};

}  // namespace fathom
