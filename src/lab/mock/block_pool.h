// A paged KV cache with prefix caching, by vLLM's rules.
//
// A block is in use (by one or more requests) or free. A free block that has a hash still holds its
// tokens, and a request with the same prefix can take it back into use; it is evicted only when it
// is handed out for something else. Free blocks queue in the order in which they are handed out:
// those of a finished request join at the end, last block first, so that the beginning of a prompt
// outlives its end; its unhashed partial block, which nobody can reuse, goes to the front.
//
// One block is reserved, as the engine reserves one. The same hash may be held by several blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lab/mock/hash_index.h"
#include "lab/mock/kv_event.h"

namespace fathom {

class BlockPool {
 public:
  using BlockId = uint32_t;

  explicit BlockPool(uint32_t blocks);  // at least 2
  // How many blocks hold so many tokens, with the reserved one.
  static uint32_t BlocksFor(uint64_t tokens, uint32_t block_size);

  // The oldest block that holds the hash.
  std::optional<BlockId> Find(BlockHash hash) const;

  // Takes a cached block into use once more.
  void Touch(BlockId block);
  bool in_use(BlockId block) const { return blocks_[block].users > 0; }

  // Takes `count` blocks from the head of the queue and appends them to `out`; there must be as
  // many. What they held is forgotten, and appended to `evicted`.
  void Allocate(size_t count, std::vector<BlockId>& out, std::vector<BlockHash>& evicted);

  // The block, in use and without a hash, is full and holds this.
  void Register(BlockId block, BlockHash hash);

  // A request lets go of its blocks, given in prompt order.
  void Free(std::span<const BlockId> blocks);

  // Forgets all hashes, also of blocks in use.
  void ForgetAll();
  // The same. False, and nothing is done, while any block is in use.
  bool Clear();

  size_t free_blocks() const { return free_count_; }
  size_t usable_blocks() const { return blocks_.size() - 1; }
  size_t cached_blocks() const { return cached_count_; }

  // Every hash held, once per block that holds it. For tests.
  std::vector<BlockHash> Content() const;
  // Stops the process if a block is in two places or in none. For tests.
  void CheckInvariants() const;

 private:
  static constexpr BlockId kNull = 0;  // the reserved block doubles as the queue's head and end

  struct Block {
    BlockHash hash = 0;
    bool hashed = false;
    uint32_t users = 0;
    BlockId next = kNull;  // in the free queue
    BlockId prev = kNull;
    BlockId next_copy = kNull;  // of the same hash, younger
  };

  void Unlink(BlockId block);
  void Append(BlockId block);
  void Prepend(BlockId block);
  void Forget(BlockId block);

  std::vector<Block> blocks_;
  HashIndex index_;  // to the oldest copy
  size_t free_count_ = 0;
  size_t cached_count_ = 0;
};

}  // namespace fathom
