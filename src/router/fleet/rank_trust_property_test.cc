// For any input: a rank is in one state with a matching cause, and its credit is between 0 and 1.
// Harmless input causes no doubt.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <vector>

#include "router/fleet/rank_trust.h"
#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

template <typename T>
T Below(T end) {
  return *rc::gen::inRange<T>(0, end);
}

Trust AnyAgreed(TimePoint now) {
  static const std::vector<Trust> kAll = {
      {TrustState::kProbing, TrustCause::kNone},
      {TrustState::kLearning, TrustCause::kNone},
      {TrustState::kTrusted, TrustCause::kNone},
      {TrustState::kDoubted, TrustCause::kBlockSizeMismatch},
      {TrustState::kExcluded, TrustCause::kBlockSizeConflict},
      {TrustState::kExcluded, TrustCause::kUnhealthy},
  };
  Trust trust = *rc::gen::elementOf(kAll);
  trust.since = now;
  return trust;
}

bool IsRoutable(const Trust& trust) {
  return trust.state == TrustState::kLearning || trust.state == TrustState::kTrusted;
}

// Which cause each kind of evidence belongs to, in the order of the variant.
constexpr std::array kCauseOf = {
    TrustCause::kNone,         TrustCause::kNoEvents,          TrustCause::kPrefixCachingOff,
    TrustCause::kTokensDiffer, TrustCause::kUnsupportedGroups, TrustCause::kEventGap,
    TrustCause::kEventLag,     TrustCause::kPredictionDrift,   TrustCause::kChurn};
static_assert(kCauseOf.size() == std::variant_size_v<Evidence>);

struct TrustRig {
  RankTrust trust;
  RankFacts facts{.agreed = {TrustState::kTrusted, TrustCause::kNone, kTestBegin}};
  TimePoint now = kTestBegin;
  uint64_t ids = 0;

  void Serve() {
    ServedRequest request{.space = static_cast<PromptSpace>(Below<int>(kPromptSpaces)),
                          .block_size = *rc::gen::element(0u, 1u, 16u, ~0u),
                          .predicted = Below(1000u),
                          .repeated = Below(1000u),
                          .comparable = Below(4) > 0,
                          .has_block = Below(2) > 0,
                          .has_news = Below(2) > 0,
                          .sent = now - seconds(Below(5)),
                          .pulse = {.removed = Below<uint64_t>(100), .lives = Below<uint64_t>(3)}};
    if (Below(4) > 0) request.cached = Below(2) > 0 ? Below(1000u) : 0;
    for (int i = Below(40); i >= 0; --i) trust.Served(request, now);
  }
  void Expect() {
    if (trust.tokens().MayExpect(now)) {
      trust.tokens().Sent(Below(2) > 0);
      trust.tokens().Expect({.id = ++ids,
                             .from = Below(8u),
                             .before = Below<uint64_t>(4),
                             .tokens = std::vector<TokenId>(Below(12), Below<TokenId>(3)),
                             .keys = {Below<uint64_t>(4), Below<uint64_t>(4)},
                             .block_size = Below(6u),
                             .model = "m"},
                            now);
    }
    if (Below(4) > 0) trust.tokens().FirstByte(ids - std::min(ids, Below<uint64_t>(3)), now);
  }
  void Store() {
    const std::vector<TokenId> tokens(Below(12), Below<TokenId>(3));
    trust.tokens().Stored({.place = static_cast<StoredTokens::Place>(Below(3)),
                           .before = Below<uint64_t>(4),
                           .tokens = tokens},
                          now);
  }
  void Hear() {
    facts.batches += Below<uint64_t>(2);
    facts.stored = Below<uint64_t>(1000);
    facts.held = Below<uint64_t>(1000);
    facts.lost += Below(8) == 0 ? 1 : 0;
    facts.preemptions = Below<uint64_t>(4);
    facts.unknown_groups = Below(8) == 0 ? 1 : 0;
    facts.pulse = {.removed = Below<uint64_t>(100), .lives = Below<uint64_t>(3)};
    facts.prefix_caching = Below(8) > 0;
  }
};

void CheckJudgement(const Judgement& judgement, const TrustRig& rig) {
  const Trust& agreed = rig.facts.agreed;
  const Trust& trust = judgement.trust;
  const TrustCause found = kCauseOf[judgement.evidence.index()];
  if (found == TrustCause::kNone) {
    RC_ASSERT(trust.state == agreed.state);
    RC_ASSERT(trust.cause == agreed.cause);
  } else {
    RC_ASSERT(IsRoutable(agreed));
    RC_ASSERT(trust.state == TrustState::kDoubted);
    RC_ASSERT(trust.cause == found);
  }
  RC_ASSERT(trust.since <= rig.now);
  for (const double credit : judgement.credit) RC_ASSERT(credit >= 0 && credit <= 1);
}

RC_GTEST_PROP(RankTrust, IsInOneStateWithACauseThatFits, ()) {
  TrustRig rig;
  for (int step = *rc::gen::inRange(1, 100); step > 0; --step) {
    switch (Below(9)) {
      case 0:
        rig.Serve();
        break;
      case 1:
        rig.Expect();
        break;
      case 2:
        rig.Store();
        break;
      case 3:
        rig.Hear();
        break;
      case 4:
        rig.facts.agreed = AnyAgreed(rig.now);
        break;
      case 5:
        rig.trust.Lagged(milliseconds(Below(10'000)));
        rig.trust.Stamped(milliseconds(Below(20'000) - 10'000), rig.now);
        break;
      case 6:
        rig.trust.Wasted(Below(1000u), rig.now);
        for (int i = Below(40); i > 0; --i) {
          rig.trust.Returned(Below(100u), Below(10u), rig.now);
        }
        break;
      default:
        rig.now += milliseconds(Below(20'000));
    }
    CheckJudgement(rig.trust.Judge({}, rig.facts, rig.now), rig);
  }
}

// Requests whose predictions come true, or miss for benign causes, with events that arrive in time.
RC_GTEST_PROP(RankTrust, RaisesNothingThatDidNotHappen, ()) {
  RankTrust trust;
  RankFacts facts{.agreed = {TrustState::kTrusted, TrustCause::kNone, kTestBegin}};
  TimePoint now = kTestBegin;
  for (int step = *rc::gen::inRange(1, 200); step > 0; --step) {
    const uint32_t predicted = 16 * Below(20u);
    ServedRequest request{.predicted = predicted,
                          .repeated = predicted,
                          .cached = predicted,
                          .has_block = true,
                          .has_news = true,
                          .sent = now,
                          .pulse = facts.pulse};
    const uint32_t gone = Below(predicted / 16 + 1);
    switch (Below(5)) {
      case 0:
        facts.pulse.removed += gone;
        request.cached = predicted - 16 * gone;
        break;
      case 1:
        ++facts.preemptions;
        request.cached = 0;
        break;
      case 2:
        ++facts.pulse.lives;
        request.cached = 0;
        break;
      case 3:
        request.comparable = false;
        request.cached = 0;
        break;
      default:
        break;
    }
    trust.Served(request, now);
    ++facts.batches;
    trust.Lagged(milliseconds(Below(2'000)));
    now += milliseconds(Below(2'000));
    const Judgement judgement = trust.Judge({}, facts, now);
    RC_ASSERT(judgement.trust == facts.agreed);
    for (const double credit : judgement.credit) RC_ASSERT(credit == 1.0);
  }
}

}  // namespace
}  // namespace fathom
