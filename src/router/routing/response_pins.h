// Which worker, and which of its ranks, has the response with this id?
//
// An engine keeps the responses of /v1/responses in its own memory: a request that continues one
// can be served by that worker alone. Ids are learned from answers, and by asking the workers.
//
// First come  The pin of an id stays until it is forgotten or expires: clients can choose the ids
//             of some engines, and must not be able to move each other's conversations.
// Threads     Any; sharded mutexes, only for requests to /v1/responses.
// Memory      At most kMostResponses, about 32 MiB, each until it has not been used for kTtl. When
//             a shard is full its oldest are dropped. Ids are kept as keyed hashes.
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

class ResponsePins {
 public:
  static constexpr size_t kMostResponses = size_t{1} << 18;
  static constexpr Duration kTtl = std::chrono::hours(12);
  // Ids above this are not remembered. Those of engines have about 40 bytes.
  static constexpr size_t kLongestId = 256;

  struct Pin {
    WorkerId worker;
    uint32_t dp_rank = 0;  // that computed it, and has probably cached it
    uint32_t tokens = 0;   // of the conversation up to the end of the response; 0: not known
    bool operator==(const Pin&) const = default;
  };

  // `secret` is random, so that clients cannot construct ids that collide.
  explicit ResponsePins(uint64_t secret) : secret_(secret) {}

  // Starts the time of the pin anew.
  std::optional<Pin> Find(std::string_view id, TimePoint now);
  void Remember(std::string_view id, WorkerId worker, TimePoint now);
  // Both only if it is pinned to this worker.
  void SetContext(std::string_view id, const Pin& pin);
  void Forget(std::string_view id, WorkerId worker);
  size_t size() const;

 private:
  static constexpr size_t kShards = 16;

  struct Entry {
    uint64_t key;
    Pin pin;
    TimePoint last_used;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::list<Entry> by_age;  // oldest first
    std::unordered_map<uint64_t, std::list<Entry>::iterator> by_key;
  };

  uint64_t KeyOf(std::string_view id) const;
  Shard& ShardOf(uint64_t key) { return shards_[key % kShards]; }
  // With the shard's mutex held. The entry, if it has not expired; it is then the youngest.
  static Entry* Use(Shard& shard, uint64_t key, TimePoint now);
  static void DropOldest(Shard& shard);

  const uint64_t secret_;
  std::array<Shard, kShards> shards_;
};

}  // namespace fathom
