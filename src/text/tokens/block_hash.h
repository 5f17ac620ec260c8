// What is this block called, and the prefix that ends with it?
//
// The scheme is the one that other KV-aware routers and cache stores use, so that keys can be
// exchanged: XXH3-64 over the block's token ids as little-endian u32, seeded by namespace, and over
// (key of the prefix before, hash of the block) for the prefix that ends with it.
//
// Only complete blocks have keys.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "text/tokens/token.h"

namespace fathom {

constexpr uint64_t kKeySeed = 1337;

// Blocks of different adapters or salts never share keys. Empty means none.
uint64_t NamespaceSeed(std::string_view lora, std::string_view salt);

// A block by itself, without what comes before. `extra` names what stands in place of some of its
// tokens (images); its order does not matter.
uint64_t LocalHash(std::span<const TokenId> block, uint64_t seed);
uint64_t LocalHash(std::span<const TokenId> block, std::span<const uint64_t> extra, uint64_t seed);

// The prefix that ends with the block `local` and has `before` in front of it. The first block of a
// prompt is its own key.
uint64_t ChainKey(uint64_t before, uint64_t local);

// Something that stands in place of some tokens of a block.
struct ExtraKey {
  uint32_t block;  // which of the blocks that are talked about
  uint64_t key;
  friend bool operator==(const ExtraKey&, const ExtraKey&) = default;
};

// How a model's cache cuts a prompt into blocks.
struct BlockShape {
  uint32_t size = 0;   // tokens from one block to the next
  bool pairs = false;  // each position is a token and its successor, so a block sees one more

  uint32_t span() const { return size + (pairs ? 1 : 0); }
  // Complete blocks in so many tokens.
  size_t BlocksIn(size_t tokens) const;
  // How much of a prompt a cache can save at most: the last token is always computed.
  size_t MostCached(size_t tokens) const;
  std::span<const TokenId> Block(std::span<const TokenId> tokens, size_t i) const {
    return tokens.subspan(i * size, span());
  }
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

}  // namespace fathom
