#include "router/fleet/rank_witness.h"

#include <utility>

namespace fathom {

bool RankWitness::MayExpect(TimePoint now) {
  const std::lock_guard lock(mutex_);
  return trust_.tokens().MayExpect(now);
}

uint64_t RankWitness::Sent(bool busy, std::optional<ExpectedBlocks> expected, TimePoint now) {
  const std::lock_guard lock(mutex_);
  TokenAgreement& tokens = trust_.tokens();
  tokens.Sent(busy);
  if (!expected || !tokens.MayExpect(now)) return 0;
  expected->id = ++notes_;
  tokens.Expect(*std::move(expected), now);
  expects_.store(true, std::memory_order_relaxed);
  return notes_;
}

void RankWitness::FirstByte(uint64_t note, TimePoint now) {
  const std::lock_guard lock(mutex_);
  trust_.tokens().FirstByte(note, now);
  expects_.store(trust_.tokens().expects(), std::memory_order_relaxed);
}

void RankWitness::Withdraw(uint64_t note) {
  const std::lock_guard lock(mutex_);
  trust_.tokens().Withdraw(note);
  expects_.store(trust_.tokens().expects(), std::memory_order_relaxed);
}

void RankWitness::Served(const ServedRequest& request, TimePoint now) {
  const std::lock_guard lock(mutex_);
  trust_.Served(request, now);
}

void RankWitness::Wasted(uint64_t tokens, TimePoint now) {
  const std::lock_guard lock(mutex_);
  trust_.Wasted(tokens, now);
}

void RankWitness::Returned(uint64_t evicted, uint64_t reused, TimePoint now) {
  const std::lock_guard lock(mutex_);
  trust_.Returned(evicted, reused, now);
}

void RankWitness::Probed(std::shared_ptr<const ParityReport> report) {
  const std::lock_guard lock(mutex_);
  trust_.tokens().Probed(std::move(report));
  for (size_t i = 0; i < kPromptKinds; ++i) {
    const bool same = !trust_.tokens().Differs(static_cast<PromptKind>(i));
    same_tokens_[i].store(same, std::memory_order_relaxed);
  }
}

std::optional<Duration> RankWitness::Stored(const StoredTokens& stored, TimePoint now) {
  const std::lock_guard lock(mutex_);
  const auto lag = trust_.tokens().Stored(stored, now);
  if (lag) trust_.Lagged(*lag);
  expects_.store(trust_.tokens().expects(), std::memory_order_relaxed);
  return lag;
}

Duration RankWitness::Stamped(Duration offset, TimePoint now) {
  const std::lock_guard lock(mutex_);
  return trust_.Stamped(offset, now);
}

Judgement RankWitness::Judge(const TrustRules& rules, const RankFacts& facts, TimePoint now) {
  const std::lock_guard lock(mutex_);
  Judgement judgement = trust_.Judge(rules, facts, now);
  expects_.store(trust_.tokens().expects(), std::memory_order_relaxed);
  trusted_.store(judgement.trust.state == TrustState::kTrusted, std::memory_order_relaxed);
  for (size_t i = 0; i < kPromptSpaces; ++i) {
    credit_[i].store(judgement.credit[i], std::memory_order_relaxed);
  }
  for (size_t i = 0; i < kPromptKinds; ++i) {
    same_tokens_[i].store(judgement.same_tokens[i], std::memory_order_relaxed);
  }
  return judgement;
}

}  // namespace fathom
