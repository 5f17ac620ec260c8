#include "router/routing/approximate_index.h"

#include <algorithm>

#include "text/tokens/key_chain.h"

namespace fathom {

uint64_t ApproximateIndex::Send(RankLabel rank, std::span<const TokenId> tokens, uint64_t seed,
                                TimePoint now) {
  Sent sent{.until = now + ttl_, .rank = Name(rank.worker, rank.dp_rank), .keys = {}};
  const size_t blocks = KeyChain(tokens, {.size = kBlock}, seed, sent.keys).All().size();
  if (blocks == 0 || sent.bytes() > most_bytes_) return 0;
  const std::lock_guard lock(mutex_);
  ForgetOld(now);
  while (sent_bytes_ + sent.bytes() > most_bytes_) ForgetOldest();
  Holder& holder = holders_[sent.rank];
  if (!holder.holdings) holder.holdings = index_.Open(rank, {.size = kBlock}, seat_);
  if (!holder.holdings) {
    holders_.erase(sent.rank);
    return 0;
  }
  const StoredRun run{.parent = std::nullopt,
                      .hashes = sent.keys,
                      .tokens = tokens.first(blocks * kBlock),
                      .locals = {},
                      .extra = {},
                      .seed = seed,
                      .part = {}};
  holder.holdings->Store(run, now);
  ++holder.sent;
  sent_bytes_ += sent.bytes();
  sent_.push_back(std::move(sent));
  return oldest_ + sent_.size() - 1;
}

void ApproximateIndex::Withdraw(uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (number < oldest_) return;  // it was not kept, or is already forgotten
  Forget(sent_[number - oldest_]);
}

void ApproximateIndex::Forget(Sent& sent) {
  holders_.at(sent.rank).holdings->Remove(sent.keys, {});
  sent_bytes_ -= sent.keys.size() * sizeof(uint64_t);
  sent.keys = {};
}

void ApproximateIndex::Evicted(uint64_t number, size_t kept) {
  const std::lock_guard lock(mutex_);
  if (number < oldest_) return;
  const size_t at = number - oldest_;
  const Name rank = sent_[at].rank;
  // The block after the one in which they end: of that one the engine may have had a part.
  const size_t block = kept / kBlock + 1;
  if (block >= sent_[at].keys.size()) return;
  const uint64_t gone = sent_[at].keys[block];
  const auto had_it = [&](const Sent& sent) {
    return sent.rank == rank && sent.keys.size() > block && sent.keys[block] == gone;
  };
  size_t last = at;
  const size_t reach = at - std::min(at, kMostLooked);
  while (last > reach && !had_it(sent_[last - 1])) --last;
  if (last == reach) return;
  size_t keys = 0;
  for (size_t i = reach; i < last && keys < kMostForgotten; ++i) {
    if (sent_[i].rank != rank) continue;
    keys += sent_[i].keys.size();
    Forget(sent_[i]);
  }
}

void ApproximateIndex::Expire(TimePoint now) {
  // A thread that holds the lock is in Send(), which forgets expired prompts itself.
  if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) ForgetOld(now);
}

void ApproximateIndex::ForgetOld(TimePoint now) {
  while (!sent_.empty() && sent_.front().until <= now) ForgetOldest();
}

void ApproximateIndex::ForgetOldest() {
  const Sent& oldest = sent_.front();
  const auto at = holders_.find(oldest.rank);
  at->second.holdings->Remove(oldest.keys, {});
  if (--at->second.sent == 0) holders_.erase(at);
  sent_bytes_ -= oldest.bytes();
  sent_.pop_front();
  ++oldest_;
}

}  // namespace fathom
