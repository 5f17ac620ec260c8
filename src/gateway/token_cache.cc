#include "gateway/token_cache.h"

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

// A shard has room for prompts of a million tokens and more, before there is a second one.
constexpr size_t kLeastShard = size_t{8} << 20;
constexpr size_t kMostShards = 16;

// What an entry costs beside its tokens: two nodes, a bucket, the shared vector.
constexpr size_t kOverhead = 200;

size_t ShardsFor(size_t max_bytes) {
  return std::clamp<size_t>(max_bytes / kLeastShard, 1, kMostShards);
}

}  // namespace

TokenCache::TokenCache(size_t max_bytes, Gauge& bytes)
    : bytes_(bytes),
      shards_(ShardsFor(max_bytes)),
      shard_bytes_(max_bytes / ShardsFor(max_bytes)) {}

SharedTokens TokenCache::Find(const PromptKey& key) {
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end()) return nullptr;
  shard.entries.splice(shard.entries.begin(), shard.entries, found->second);
  return found->second->tokens;
}

void TokenCache::Put(const PromptKey& key, SharedTokens tokens) {
  const size_t bytes = tokens->capacity() * sizeof(TokenId) + kOverhead;
  if (bytes > shard_bytes_) return;
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  if (shard.by_key.contains(key)) return;  // another loop has asked, too
  while (shard.bytes + bytes > shard_bytes_) DropLast(shard);
  shard.entries.push_front({key, std::move(tokens), bytes});
  shard.by_key.emplace(key, shard.entries.begin());
  shard.bytes += bytes;
  bytes_.Add(static_cast<int64_t>(bytes));
}

void TokenCache::DropLast(Shard& shard) {
  const Entry& last = shard.entries.back();
  shard.bytes -= last.bytes;
  bytes_.Add(-static_cast<int64_t>(last.bytes));
  shard.by_key.erase(last.key);
  shard.entries.pop_back();
}

}  // namespace fathom
