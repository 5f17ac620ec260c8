// The keys of a prompt's blocks, made as far as somebody asks.
//
// A key needs all keys before it, and a lookup that finds nothing after the first few need not pay
// for the rest: At(i) makes what is missing up to i.
//
// Memory   The keys lie in `storage`, which the caller keeps and may use again for the next prompt.
// Threads  One.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "text/tokens/block_hash.h"

namespace fathom {

class KeyChain {
 public:
  // Of token ids. `known` are the keys of its first blocks; they may lie in
  // `storage` already.
  KeyChain(std::span<const TokenId> tokens, BlockShape shape, uint64_t seed,
           std::vector<uint64_t>& storage, std::span<const uint64_t> known = {})
      : tokens_(tokens),
        shape_(shape),
        seed_(seed),
        size_(shape.BlocksIn(tokens.size())),
        made_(std::min(known.size(), size_)),
        keys_(storage) {
    Prepare();
    if (known.data() != keys_.data()) std::ranges::copy(known.first(made_), keys_.begin());
  }
  // Of blocks whose local hashes are known already.
  KeyChain(std::span<const uint64_t> locals, std::vector<uint64_t>& storage)
      : locals_(locals.data()), size_(locals.size()), keys_(storage) {
    Prepare();
  }

  size_t size() const { return size_; }
  // Blocks that have their key already.
  size_t made() const { return made_; }

  uint64_t At(size_t i) {
    if (i >= made_) Extend(i + 1);
    return keys_[i];
  }
  // All of them.
  std::span<const uint64_t> All() {
    if (made_ < size_) Extend(size_);
    return {keys_.data(), size_};
  }

 private:
  void Prepare() {
    if (keys_.size() < size_) keys_.resize(size_);
  }
  void Extend(size_t end);

  std::span<const TokenId> tokens_;
  const uint64_t* locals_ = nullptr;
  BlockShape shape_;
  uint64_t seed_ = kKeySeed;
  size_t size_;
  size_t made_ = 0;
  std::vector<uint64_t>& keys_;
};

}  // namespace fathom
