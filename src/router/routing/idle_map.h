// What was noted last under this key, unless that was too long ago?
//
// Threads  Any; sharded mutexes.
// Memory   At most `most` entries, each until it has been idle for the TTL. When a shard is full
// its
//          oldest entries are dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/clock.h"

namespace fathom {

template <class Value>
class IdleMap {
 public:
  // Keys are hashes, so that clients cannot choose the shard.
  using Key = uint64_t;
  struct Found {
    Value value;
    Duration idle;
  };

  IdleMap(Duration ttl, size_t most) : ttl_(ttl), most_(most) {}

  Duration ttl() const { return ttl_; }

  std::optional<Found> Find(Key key, TimePoint now) {
    Shard& shard = ShardOf(key);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.by_key.find(key);
    if (found == shard.by_key.end()) return std::nullopt;
    const Duration idle = now - found->second->last_used;
    if (idle < ttl_) return Found{found->second->value, idle};
    shard.by_age.erase(found->second);
    shard.by_key.erase(found);
    return std::nullopt;
  }

  void Put(Key key, const Value& value, TimePoint now) {
    Shard& shard = ShardOf(key);
    const std::lock_guard lock(shard.mutex);
    if (const auto found = shard.by_key.find(key); found != shard.by_key.end()) {
      found->second->value = value;
      found->second->last_used = now;
      shard.by_age.splice(shard.by_age.end(), shard.by_age, found->second);
      return;
    }
    MakeRoom(shard, now);
    shard.by_age.push_back({key, value, now});
    shard.by_key.emplace(key, std::prev(shard.by_age.end()));
  }

  size_t size() const {
    size_t total = 0;
    for (const Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      total += shard.by_key.size();
    }
    return total;
  }

 private:
  static constexpr size_t kShards = 16;

  struct Entry {
    Key key;
    Value value;
    TimePoint last_used;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::list<Entry> by_age;  // oldest first
    std::unordered_map<Key, typename std::list<Entry>::iterator> by_key;
  };

  Shard& ShardOf(Key key) { return shards_[key % kShards]; }

  // With the shard's mutex held.
  void MakeRoom(Shard& shard, TimePoint now) {
    while (!shard.by_age.empty() && (shard.by_key.size() >= most_ / kShards ||
                                     now - shard.by_age.front().last_used >= ttl_)) {
      shard.by_key.erase(shard.by_age.front().key);
      shard.by_age.pop_front();
    }
  }

  const Duration ttl_;
  const size_t most_;
  std::array<Shard, kShards> shards_;
};

}  // namespace fathom
