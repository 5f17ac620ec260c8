// What do the ranks hold, as estimated from the router's own decisions?
//
// For engines without KV events: every prompt that is sent to a rank is assumed to be cached there
// until a TTL has passed. The index is the same that events feed; only its source is an estimate.
//
// Threads  Any; one lock for writers, none for readers.
// Memory   The index's limit, plus an eighth of it for the list of sent prompts; the oldest prompts
//          beyond that are forgotten.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "router/index/cache_index.h"

namespace fathom {

class ApproximateIndex {
 public:
  // Tokens per block. Engines have other sizes; an estimate need not be finer.
  static constexpr uint32_t kBlock = 64;

  ApproximateIndex(Duration ttl, size_t max_bytes, uint64_t secret)
      : ttl_(ttl), most_bytes_(max_bytes / 8), index_(max_bytes, secret), seat_(index_.epochs()) {}

  // Prompts that Evicted() looks at, and keys that it removes, so that it holds no loop.
  static constexpr size_t kMostLooked = 16384;
  static constexpr size_t kMostForgotten = 8192;

  // Returns the number of this prompt.
  uint64_t Send(RankLabel rank, std::span<const TokenId> tokens, uint64_t seed, TimePoint now);
  // The prompt did not reach the rank.
  void Withdraw(uint64_t number);
  // The rank that got this prompt had only its first `kept` tokens any more, although it had more
  // of them when an earlier one was sent there. Caches evict what was used least recently: forgets
  // what was sent there up to then, but at most kMostForgotten keys at once.
  void Evicted(uint64_t number, size_t kept);
  // Forgets expired prompts. Send() does it too; this is for times without traffic.
  void Expire(TimePoint now);

  const CacheIndex& index() const { return index_; }

 private:
  using Name = std::pair<uint64_t, uint32_t>;  // worker, dp_rank

  struct Sent {
    TimePoint until;
    Name rank;
    std::vector<uint64_t> keys;

    size_t bytes() const { return sizeof(*this) + keys.size() * sizeof(uint64_t); }
  };
  struct Holder {
    std::unique_ptr<RankHoldings> holdings;
    size_t sent = 0;
  };

  // With mutex_ held.
  void ForgetOld(TimePoint now);
  void ForgetOldest();
  // It stays in the list, without keys.
  void Forget(Sent& sent);

  const Duration ttl_;
  const size_t most_bytes_;  // of sent_
  CacheIndex index_;
  std::mutex mutex_;
  Epochs::Seat seat_;               // used with mutex_ held
  std::map<Name, Holder> holders_;  // guarded by mutex_
  std::deque<Sent> sent_;           // guarded by mutex_; oldest first
  uint64_t oldest_ = 1;             // guarded by mutex_; number of sent_.front()
  size_t sent_bytes_ = 0;           // guarded by mutex_
};

}  // namespace fathom
