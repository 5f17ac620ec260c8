#include "router/routing/session_affinity.h"

#include <xxhash.h>

namespace fathom {

// Sessions are identified by a 64-bit hash of their name: a collision only makes two sessions share
// a worker.
uint64_t SessionAffinity::KeyOf(std::string_view session) {
  return XXH3_64bits(session.data(), session.size());
}

std::optional<WorkerId> SessionAffinity::Find(std::string_view session, TimePoint now) {
  const uint64_t key = KeyOf(session);
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end()) return std::nullopt;
  if (now - found->second->last_used >= ttl_) {
    shard.by_age.erase(found->second);
    shard.by_key.erase(found);
    return std::nullopt;
  }
  return found->second->worker;
}

void SessionAffinity::Remember(std::string_view session, WorkerId worker, TimePoint now) {
  const uint64_t key = KeyOf(session);
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  if (const auto found = shard.by_key.find(key); found != shard.by_key.end()) {
    found->second->worker = worker;
    found->second->last_used = now;
    shard.by_age.splice(shard.by_age.end(), shard.by_age, found->second);
    return;
  }
  const auto stale = [&] {
    return !shard.by_age.empty() && (shard.by_key.size() >= kMaxSessions / kShards ||
                                     now - shard.by_age.front().last_used >= ttl_);
  };
  while (stale()) {
    shard.by_key.erase(shard.by_age.front().key);
    shard.by_age.pop_front();
  }
  shard.by_age.push_back({key, worker, now});
  shard.by_key.emplace(key, std::prev(shard.by_age.end()));
}

size_t SessionAffinity::size() const {
  size_t total = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    total += shard.by_key.size();
  }
  return total;
}

}  // namespace fathom
