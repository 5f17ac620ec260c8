#include "router/fleet/rank_trust.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace fathom {

void RankTrust::Served(const ServedRequest& request, TimePoint now) {
  silence_.Served(request, now);
  if (!request.cached || !request.comparable) return;
  if (unsettled_.size() == kMostUnsettled) unsettled_.pop_front();
  unsettled_.push_back({request, now});
}

void RankTrust::Hear(const RankFacts& facts, TimePoint now) {
  if (facts.pulse.lives != lives_) {  // new process or cleared: drop the state
    lives_ = facts.pulse.lives;
    reuse_.Reset();
    predictions_.Reset();
    tokens_.Reset();
    lag_.Reset();
  }
  silence_.Heard(facts.batches);
  reuse_.Reported(facts.prefix_caching);
  gap_.Heard(facts.lost, facts.gaps, facts.repaired, now);
  churn_.Heard(facts.stored, facts.removed, facts.held, now);
  if (facts.preemptions > preemptions_) preempted_ = now;
  preemptions_ = facts.preemptions;
}

void RankTrust::Settle(const TrustRules& rules, const RankFacts& facts, TimePoint now) {
  const Duration settling = std::max(rules.settling, kSettling);
  while (!unsettled_.empty() && now - unsettled_.front().answered >= settling) {
    Weigh(unsettled_.front().request, facts);
    unsettled_.pop_front();
  }
}

void RankTrust::Weigh(const ServedRequest& request, const RankFacts& facts) {
  // The rank was cleared, or its stream restarted, since the request was sent: no conclusion is
  // possible.
  if (request.pulse.lives != facts.pulse.lives) return;
  if (request.pulse.removed > facts.pulse.removed) return;
  const uint32_t cached = *request.cached;
  // A preempted request reports 0 cached tokens, even if it found some at first.
  if (cached == 0 && preempted_ && *preempted_ >= request.sent) return;
  const uint64_t left = (facts.pulse.removed - request.pulse.removed) * request.block_size;
  // If as many tokens were evicted since the request was sent as it repeats, a miss is no evidence.
  if (cached > 0 || left < request.repeated) reuse_.Served(request);
  const uint32_t over = request.predicted > cached ? request.predicted - cached : 0;
  // Tokens that may have been evicted since then are no evidence, for or against the rank.
  if (over > 0 && left >= over) return;
  const uint32_t untold = std::min(request.untold, cached);
  predictions_.Add(request.space,
                   {.predicted = request.predicted,
                    .cached = cached,
                    .missing = static_cast<uint32_t>(over - std::min<uint64_t>(over, left)),
                    .unforeseen = untold > request.predicted ? untold - request.predicted : 0});
}

RankTrust::Finding RankTrust::Find(const TrustRules& rules, const RankFacts& facts, TimePoint now) {
  // Every watch is asked each time, because Look() advances the state of some.
  const auto unused = reuse_.Look();
  const auto silence = silence_.Look(rules.no_events_after, now);
  const auto difference = tokens_.Look(now);
  const auto gap = gap_.Look(now);
  const auto late = lag_.Look(rules.lag_limit);
  const auto drift = predictions_.Look();
  const auto churn = churn_.Look(now);
  if (unused) return {TrustCause::kPrefixCachingOff, *unused};
  if (facts.publisher_off) return {TrustCause::kNoEvents, Silence{.reported = true}};
  if (silence) return {TrustCause::kNoEvents, *silence};
  if (difference && !difference->others_agree) return {TrustCause::kTokensDiffer, *difference};
  if (facts.unknown_groups > 0) {
    return {TrustCause::kUnsupportedGroups, UnknownGroups{facts.unknown_groups}};
  }
  if (gap) return {TrustCause::kEventGap, *gap};
  if (late) return {TrustCause::kEventLag, *late};
  // What one kind of prompt loses explains less than what all of them lose.
  if (difference) return {TrustCause::kTokensDiffer, *difference};
  if (drift) return {TrustCause::kPredictionDrift, *drift};
  if (churn) return {TrustCause::kChurn, *churn};
  return {};
}

void RankTrust::SetCredit(Judgement& judgement) const {
  for (size_t i = 0; i < kPromptKinds; ++i) {
    judgement.same_tokens[i] = !tokens_.Differs(static_cast<PromptKind>(i));
  }
  switch (judgement.trust.cause) {
    // Its events do not describe its cache, or there are none.
    case TrustCause::kBlockSizeMismatch:
    case TrustCause::kPrefixCachingOff:
    case TrustCause::kNoEvents:
      judgement.credit.fill(0);
      return;
    // Late events: assume that half of what they report is outdated.
    case TrustCause::kEventLag:
      judgement.credit.fill(0.5);
      return;
    // Otherwise the credit is the share of predicted tokens that was found.
    default:
      for (size_t i = 0; i < kPromptSpaces; ++i) {
        judgement.credit[i] = predictions_.Credit(static_cast<PromptSpace>(i));
      }
  }
  if (std::ranges::none_of(judgement.same_tokens, std::identity())) judgement.credit.fill(0);
}

Judgement RankTrust::Judge(const TrustRules& rules, const RankFacts& facts, TimePoint now) {
  Hear(facts, now);
  Settle(rules, facts, now);
  Finding finding = Find(rules, facts, now);
  Judgement judgement{.trust = facts.agreed};
  const bool routable =
      facts.agreed.state == TrustState::kLearning || facts.agreed.state == TrustState::kTrusted;
  if (routable && finding.cause != TrustCause::kNone) {
    judgement.trust = {TrustState::kDoubted, finding.cause, now};
    judgement.evidence = std::move(finding.evidence);
  }
  Trust& trust = judgement.trust;
  if (trust.since == TimePoint{}) trust.since = now;
  if (trust_ && trust.state == trust_->state && trust.cause == trust_->cause) {
    trust.since = trust_->since;
  } else {
    const bool was_judged = trust_ && trust_->state != TrustState::kProbing;
    if (was_judged) trust.since = std::max(trust.since, now);
    waste_.Change(now);
  }
  trust_ = trust;
  SetCredit(judgement);
  judgement.cost = waste_.tokens();
  return judgement;
}

}  // namespace fathom
