// What belongs to this name, if it was met lately?
//
// Threads  Any. Shards with a mutex each, held for a lookup or an insertion.
// Memory   At most `max_bytes`, as whoever puts something counts it, bookkeeping included; what was
//          used least recently goes first. What is larger than a shard's part is not kept. 0 keeps
//          nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "metrics/counter.h"
#include "text/tokens/text_key.h"

namespace fathom {

// `Value` is cheap to copy, and empty where nothing is known.
template <class Value>
class KeyedCache {
 public:
  // `bytes` shows how much is held.
  KeyedCache(size_t max_bytes, Gauge& bytes)
      : bytes_(bytes),
        shards_(std::clamp<size_t>(max_bytes / kLeastShard, 1, kMostShards)),
        shard_bytes_(max_bytes / shards_.size()) {}
  KeyedCache(const KeyedCache&) = delete;
  KeyedCache& operator=(const KeyedCache&) = delete;

  Value Find(const TextKey& key) {
    Shard& shard = ShardOf(key);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.by_key.find(key);
    if (found == shard.by_key.end()) return Value();
    shard.entries.splice(shard.entries.begin(), shard.entries, found->second);
    return found->second->value;
  }

  // The first value of a name stays. `bytes` is what the value itself takes.
  void Put(const TextKey& key, Value value, size_t bytes) {
    bytes += kOverhead;
    if (bytes > shard_bytes_) return;
    Shard& shard = ShardOf(key);
    const std::lock_guard lock(shard.mutex);
    if (shard.by_key.contains(key)) return;
    while (shard.bytes + bytes > shard_bytes_) DropLast(shard);
    shard.entries.push_front({key, std::move(value), bytes});
    shard.by_key.emplace(key, shard.entries.begin());
    shard.bytes += bytes;
    bytes_.Add(static_cast<int64_t>(bytes));
  }

 private:
  // A shard has room for prompts of a million tokens and more, before there is a second one.
  static constexpr size_t kLeastShard = size_t{8} << 20;
  static constexpr size_t kMostShards = 16;
  // What an entry costs beside its value: two nodes, a bucket, what holds the value together.
  static constexpr size_t kOverhead = 200;

  struct Entry {
    TextKey key;
    Value value;
    size_t bytes;
  };
  struct Shard {
    std::mutex mutex;          // guards the rest
    std::list<Entry> entries;  // the one that was used last is first
    std::unordered_map<TextKey, typename std::list<Entry>::iterator> by_key;
    size_t bytes = 0;
  };

  Shard& ShardOf(const TextKey& key) { return shards_[key.high % shards_.size()]; }

  void DropLast(Shard& shard) {
    const Entry& last = shard.entries.back();
    shard.bytes -= last.bytes;
    bytes_.Add(-static_cast<int64_t>(last.bytes));
    shard.by_key.erase(last.key);
    shard.entries.pop_back();
  }

  Gauge& bytes_;
  std::vector<Shard> shards_;
  const size_t shard_bytes_;
};

}  // namespace fathom
