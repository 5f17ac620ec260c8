// Which worker served this session last?
//
// Threads  Any; sharded mutexes, only for requests that name a session.
// Memory   At most kMaxSessions are remembered, each until it has been idle for the TTL. When a
//          shard is full its oldest sessions are dropped.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/ids.h"

namespace fathom {

class SessionAffinity {
 public:
  static constexpr size_t kMaxSessions = 1 << 20;

  explicit SessionAffinity(Duration ttl) : ttl_(ttl) {}

  bool enabled() const { return ttl_ > Duration::zero(); }
  std::optional<WorkerId> Find(std::string_view session, TimePoint now);
  void Remember(std::string_view session, WorkerId worker, TimePoint now);
  size_t size() const;

 private:
  static constexpr size_t kShards = 16;

  struct Entry {
    uint64_t key;
    WorkerId worker;
    TimePoint last_used;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::list<Entry> by_age;  // oldest first
    std::unordered_map<uint64_t, std::list<Entry>::iterator> by_key;
  };

  static uint64_t KeyOf(std::string_view session);
  Shard& ShardOf(uint64_t key) { return shards_[key % kShards]; }

  const Duration ttl_;
  std::array<Shard, kShards> shards_;
};

}  // namespace fathom
