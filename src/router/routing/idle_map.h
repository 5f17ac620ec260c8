// What was noted last under this key, unless that was too long ago?
//
// Threads  Any; sharded mutexes.
// Memory   At most `most` entries, each until it has been idle for the TTL. When a shard is full
//          its oldest entries are dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

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

  struct Slot {
    Value value;
    TimePoint last_used;
  };
  // Calls `change(std::optional<Slot>&)` with what is noted under the key, if it has not expired;
  // what that leaves there is noted from then on. Other uses of the key wait.
  template <class F>
  void Change(Key key, TimePoint now, F&& change) {
    Shard& shard = ShardOf(key);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.by_key.find(key);
    const bool known = found != shard.by_key.end() && now - found->second->last_used < ttl_;
    std::optional<Slot> slot;
    if (known) slot = Slot{found->second->value, found->second->last_used};
    change(slot);
    if (found != shard.by_key.end() && (!known || !slot)) {
      shard.by_age.erase(found->second);
      shard.by_key.erase(found);
    }
    if (!slot) return;
    if (!known) {
      MakeRoom(shard, now);
      shard.by_age.push_back({key, std::move(slot->value), slot->last_used});
      shard.by_key.emplace(key, std::prev(shard.by_age.end()));
      return;
    }
    Entry& entry = *found->second;
    entry.value = std::move(slot->value);
    if (std::exchange(entry.last_used, slot->last_used) < slot->last_used) {
      shard.by_age.splice(shard.by_age.end(), shard.by_age, found->second);
    }
  }

  // Where a walk through all entries stands.
  class Walk {
   public:
    bool done() const { return shard_ == kShards; }

   private:
    friend class IdleMap;
    size_t shard_ = 0;
    std::vector<std::pair<Key, TimePoint>> page_;  // the last visited ones of the shard
  };
  // Calls `visit(key, value, last_used)` for at most `most` further entries, in each shard the
  // youngest first. One that is used during the walk may be left out, or visited twice.
  template <class F>
  void Continue(Walk& walk, size_t most, F&& visit) const {
    if (walk.done()) return;
    const Shard& shard = shards_[walk.shard_];
    const std::lock_guard lock(shard.mutex);
    auto at = shard.by_age.rbegin();
    if (!walk.page_.empty()) at = After(shard, walk.page_);
    walk.page_.clear();
    for (; at != shard.by_age.rend() && most > 0; ++at, --most) {
      visit(at->key, at->value, at->last_used);
      walk.page_.emplace_back(at->key, at->last_used);
    }
    if (at != shard.by_age.rend()) return;
    walk.page_.clear();
    ++walk.shard_;
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

  // The first entry that is older than those of the page, as far as these were not used since.
  static auto After(const Shard& shard, const std::vector<std::pair<Key, TimePoint>>& page) {
    for (size_t i = page.size(); i-- > 0;) {
      const auto found = shard.by_key.find(page[i].first);
      if (found == shard.by_key.end() || found->second->last_used != page[i].second) continue;
      return std::make_reverse_iterator(typename std::list<Entry>::const_iterator(found->second));
    }
    return shard.by_age.rend();
  }
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
