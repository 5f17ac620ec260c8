// What requests and events have seen of a rank, gathered from all threads.
//
// Loops tell of requests that they send and that were served, the intake of events; the keeper of
// trust (fleet/trust_keeper.h) asks for a judgement now and then, and publishes what the rank's
// word is worth to whoever prices it.
//
// Threads  Any; a short lock. What a request needs to know of the rank takes none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "fleet/rank_trust.h"

namespace fathom {

class RankWitness {
 public:
  // Whether another request's blocks can be noted.
  bool MayExpect(TimePoint now);
  // A request goes to the rank. Returns the number of a note if `expected` was taken, for
  // FirstByte() and Withdraw(); otherwise 0.
  uint64_t Sent(bool busy, std::optional<ExpectedBlocks> expected, TimePoint now);
  void FirstByte(uint64_t note, TimePoint now);
  void Withdraw(uint64_t note);
  void Served(const ServedRequest& request, TimePoint now);
  void Wasted(uint64_t tokens, TimePoint now);
  void Returned(uint64_t evicted, uint64_t reused, TimePoint now);

  // The intake's. Stored() is worth calling only while something is expected.
  bool expects() const { return expects_.load(std::memory_order_relaxed); }
  // The lag, where it is known now.
  std::optional<Duration> Stored(const StoredTokens& stored, TimePoint now);
  Duration Stamped(Duration offset, TimePoint now);
  void Pulse(const PulseReading& pulse) {
    removed_.store(pulse.removed, std::memory_order_relaxed);
    lives_.store(pulse.lives, std::memory_order_relaxed);
  }
  PulseReading pulse() const {
    return {removed_.load(std::memory_order_relaxed), lives_.load(std::memory_order_relaxed)};
  }

  // The keeper's.
  Judgement Judge(const TrustRules& rules, const RankFacts& facts, TimePoint now);

  // Whether its events say what it holds, as far as anybody knows.
  bool trusted() const { return trusted_.load(std::memory_order_relaxed); }
  // What the rank's word is worth for such a prompt.
  double Credit(PromptSpace space) const {
    return credit_[static_cast<size_t>(space)].load(std::memory_order_relaxed);
  }

 private:
  std::mutex mutex_;
  RankTrust trust_;     // guarded by mutex_
  uint64_t notes_ = 0;  // guarded by mutex_
  // Numbers that order nothing else.
  std::atomic<bool> expects_{false};
  std::atomic<uint64_t> removed_{0};
  std::atomic<uint64_t> lives_{0};
  std::atomic<bool> trusted_{false};
  std::array<std::atomic<double>, kPromptSpaces> credit_{1.0, 1.0, 1.0};
};

}  // namespace fathom
