#include "router/routing/response_pins.h"

#include <xxhash.h>

#include <iterator>

namespace fathom {

uint64_t ResponsePins::KeyOf(std::string_view id) const {
  return XXH3_64bits_withSeed(id.data(), id.size(), secret_);
}

void ResponsePins::DropOldest(Shard& shard) {
  shard.by_key.erase(shard.by_age.front().key);
  shard.by_age.pop_front();
}

ResponsePins::Entry* ResponsePins::Use(Shard& shard, uint64_t key, TimePoint now) {
  while (!shard.by_age.empty() && now - shard.by_age.front().last_used >= kTtl) DropOldest(shard);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end()) return nullptr;
  shard.by_age.splice(shard.by_age.end(), shard.by_age, found->second);
  found->second->last_used = now;
  return &*found->second;
}

std::optional<ResponsePins::Pin> ResponsePins::Find(std::string_view id, TimePoint now) {
  if (id.size() > kLongestId) return std::nullopt;
  const uint64_t key = KeyOf(id);
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const Entry* const entry = Use(shard, key, now);
  return entry != nullptr ? std::optional(entry->pin) : std::nullopt;
}

void ResponsePins::Remember(std::string_view id, WorkerId worker, TimePoint now) {
  if (id.empty() || id.size() > kLongestId) return;
  const uint64_t key = KeyOf(id);
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  if (Use(shard, key, now) != nullptr) return;
  if (shard.by_key.size() >= kMostResponses / kShards) DropOldest(shard);
  shard.by_age.push_back({key, {worker}, now});
  shard.by_key.emplace(key, std::prev(shard.by_age.end()));
}

void ResponsePins::SetContext(std::string_view id, const Pin& pin) {
  const uint64_t key = KeyOf(id);
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end() || found->second->pin.worker != pin.worker) return;
  found->second->pin = pin;
}

void ResponsePins::Forget(std::string_view id, WorkerId worker) {
  const uint64_t key = KeyOf(id);
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end() || found->second->pin.worker != worker) return;
  shard.by_age.erase(found->second);
  shard.by_key.erase(found);
}

size_t ResponsePins::size() const {
  size_t total = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    total += shard.by_key.size();
  }
  return total;
}

}  // namespace fathom
