#include "lab/mock/block_pool.h"

#include <algorithm>

#include "base/check.h"

namespace fathom {

BlockPool::BlockPool(uint32_t blocks) : blocks_(blocks), index_(blocks) {
  CHECK(blocks >= 2);
  for (BlockId block = 1; block < blocks; ++block) Append(block);
}

void BlockPool::Unlink(BlockId block) {
  Block& b = blocks_[block];
  blocks_[b.prev].next = b.next;
  blocks_[b.next].prev = b.prev;
  --free_count_;
}

void BlockPool::Append(BlockId block) {
  const BlockId last = blocks_[kNull].prev;
  blocks_[block].prev = last;
  blocks_[block].next = kNull;
  blocks_[last].next = block;
  blocks_[kNull].prev = block;
  ++free_count_;
}

void BlockPool::Prepend(BlockId block) {
  const BlockId first = blocks_[kNull].next;
  blocks_[block].prev = kNull;
  blocks_[block].next = first;
  blocks_[first].prev = block;
  blocks_[kNull].next = block;
  ++free_count_;
}

uint32_t BlockPool::BlocksFor(uint64_t tokens, uint32_t block_size) {
  return static_cast<uint32_t>(std::max<uint64_t>((tokens + block_size - 1) / block_size, 1) + 1);
}

std::optional<BlockPool::BlockId> BlockPool::Find(BlockHash hash) const {
  const uint32_t found = index_.Find(hash);
  if (found == HashIndex::kNone) return std::nullopt;
  return found;
}

void BlockPool::Touch(BlockId block) {
  if (blocks_[block].users == 0) Unlink(block);
  ++blocks_[block].users;
}

void BlockPool::Allocate(size_t count, std::vector<BlockId>& out, std::vector<BlockHash>& evicted) {
  CHECK(count <= free_count_);
  for (size_t i = 0; i < count; ++i) {
    const BlockId block = blocks_[kNull].next;
    Unlink(block);
    if (blocks_[block].hashed) {
      evicted.push_back(blocks_[block].hash);
      Forget(block);
    }
    blocks_[block].users = 1;
    out.push_back(block);
  }
}

void BlockPool::Forget(BlockId block) {
  Block& b = blocks_[block];
  const uint32_t oldest = index_.Find(b.hash);
  if (oldest != block) {
    BlockId before = oldest;
    while (blocks_[before].next_copy != block) before = blocks_[before].next_copy;
    blocks_[before].next_copy = b.next_copy;
  } else if (b.next_copy != kNull) {
    index_.Set(b.hash, b.next_copy);
  } else {
    index_.Erase(b.hash);
  }
  b.next_copy = kNull;
  b.hashed = false;
  --cached_count_;
}

void BlockPool::Register(BlockId block, BlockHash hash) {
  Block& b = blocks_[block];
  CHECK(b.users > 0 && !b.hashed);
  b.hash = hash;
  b.hashed = true;
  ++cached_count_;
  const uint32_t oldest = index_.Find(hash);
  if (oldest == HashIndex::kNone) {
    index_.Set(hash, block);
    return;
  }
  BlockId last = oldest;
  while (blocks_[last].next_copy != kNull) last = blocks_[last].next_copy;
  blocks_[last].next_copy = block;
}

void BlockPool::Free(std::span<const BlockId> blocks) {
  for (size_t i = blocks.size(); i-- > 0;) {
    const BlockId block = blocks[i];
    CHECK(blocks_[block].users > 0);
    if (--blocks_[block].users > 0) continue;
    blocks_[block].hashed ? Append(block) : Prepend(block);
  }
}

bool BlockPool::Clear() {
  if (free_count_ != usable_blocks()) return false;
  ForgetAll();
  return true;
}

void BlockPool::ForgetAll() {
  for (Block& block : blocks_) {
    block.hashed = false;
    block.next_copy = kNull;
  }
  index_.Clear();
  cached_count_ = 0;
}

std::vector<BlockHash> BlockPool::Content() const {
  std::vector<BlockHash> content;
  for (const Block& block : blocks_) {
    if (block.hashed) content.push_back(block.hash);
  }
  return content;
}

void BlockPool::CheckInvariants() const {
  std::vector<bool> queued(blocks_.size());
  size_t count = 0;
  for (BlockId b = blocks_[kNull].next; b != kNull; b = blocks_[b].next, ++count) {
    CHECK(!queued[b] && blocks_[b].users == 0 && blocks_[blocks_[b].next].prev == b);
    queued[b] = true;
  }
  CHECK(count == free_count_);
  size_t hashed = 0;
  for (BlockId b = 1; b < blocks_.size(); ++b) {
    CHECK(queued[b] == (blocks_[b].users == 0));
    if (!blocks_[b].hashed) continue;
    ++hashed;
    bool reachable = false;
    for (BlockId c = *Find(blocks_[b].hash); c != kNull; c = blocks_[c].next_copy)
      reachable |= c == b;
    CHECK(reachable);
  }
  CHECK(hashed == cached_count_);
}

}  // namespace fathom
