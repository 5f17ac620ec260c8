// What have requests and events shown about a rank? Collects it from all threads.
//
// Loops report the requests that they send and that were served; the intake reports events. The
// trust keeper (router/fleet/trust_keeper.h) calls Judge() periodically, which publishes the rank's
// credit for the price of a choice.
//
// Threads  Any; a short lock. trusted(), Credit(), pulse() and expects() take none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "router/fleet/rank_trust.h"

namespace fathom {

class RankWitness {
 public:
  // Whether there is room for another request's expected blocks.
  bool MayExpect(TimePoint now);
  // A request goes to the rank. Returns a note's number for FirstByte() and Withdraw() if
  // `expected` was noted; otherwise 0.
  uint64_t Sent(bool busy, std::optional<ExpectedBlocks> expected, TimePoint now);
  void FirstByte(uint64_t note, TimePoint now);
  void Withdraw(uint64_t note);
  void Served(const ServedRequest& request, TimePoint now);
  void Wasted(uint64_t tokens, TimePoint now);
  void Returned(uint64_t evicted, uint64_t reused, TimePoint now);
  // Has its effect on Credit() at once, before the next judgement.
  void Probed(std::shared_ptr<const ParityReport> report);

  // For the event intake. Stored() has an effect only while expects() is true.
  bool expects() const { return expects_.load(std::memory_order_relaxed); }
  // Returns the lag, if this event shows it.
  std::optional<Duration> Stored(const StoredTokens& stored, TimePoint now);
  Duration Stamped(Duration offset, TimePoint now);
  void Pulse(const PulseReading& pulse) {
    removed_.store(pulse.removed, std::memory_order_relaxed);
    lives_.store(pulse.lives, std::memory_order_relaxed);
  }
  PulseReading pulse() const {
    return {removed_.load(std::memory_order_relaxed), lives_.load(std::memory_order_relaxed)};
  }

  // For the trust keeper.
  Judgement Judge(const TrustRules& rules, const RankFacts& facts, TimePoint now);

  // Whether the last judgement was kTrusted.
  bool trusted() const { return trusted_.load(std::memory_order_relaxed); }
  // The credit of the rank's events for such a prompt.
  double Credit(PromptSpace space, PromptKind kind = PromptKind::kChat) const {
    const bool same = same_tokens_[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
    return same ? credit_[static_cast<size_t>(space)].load(std::memory_order_relaxed) : 0;
  }

 private:
  std::mutex mutex_;
  RankTrust trust_;     // guarded by mutex_
  uint64_t notes_ = 0;  // guarded by mutex_
  // Relaxed, pair with nothing.
  std::atomic<bool> expects_{false};
  std::atomic<uint64_t> removed_{0};
  std::atomic<uint64_t> lives_{0};
  std::atomic<bool> trusted_{false};
  std::array<std::atomic<double>, kPromptSpaces> credit_{1.0, 1.0, 1.0};
  std::array<std::atomic<bool>, kPromptKinds> same_tokens_{true, true, true, true, true,
                                                           true, true, true, true};
};

}  // namespace fathom
