// A rank for the tests of RankTrust, and the events that can affect it.
#pragma once

#include <functional>
#include <vector>

#include "router/fleet/rank_trust.h"
#include "testing/test_clock.h"

namespace fathom {

// A trusted rank that is checked as often as in a running router.
struct Rig {
  RankTrust trust;
  RankFacts facts{.agreed = {TrustState::kTrusted, TrustCause::kNone, kTestBegin}};
  TimePoint now = kTestBegin;
  Judgement judgement;

  Rig() { Look(); }

  void Look() { judgement = trust.Judge({}, facts, now); }
  void Pass(Duration duration) {
    for (const TimePoint end = now + duration; now < end;) {
      now += std::chrono::milliseconds(250);
      Look();
    }
  }
  // A request with 160 cached tokens predicted from events, of which `found` were found.
  ServedRequest Predicted(uint32_t found) const {
    return {.predicted = 160, .repeated = 160, .cached = found, .sent = now, .pulse = facts.pulse};
  }
  void Serve(size_t requests, const ServedRequest& request) {
    for (size_t i = 0; i < requests; ++i) trust.Served(request, now);
  }
  // The next request is alone on the rank, and `event` is the event of its blocks.
  void Stores(const std::vector<TokenId>& event) {
    const uint64_t id = ++ids_;
    trust.tokens().Sent(false);
    trust.tokens().Expect(
        {.id = id, .tokens = {1, 2, 3, 4}, .keys = {id}, .block_size = 4, .model = "m"}, now);
    trust.tokens().FirstByte(id, now);
    trust.tokens().Stored({.tokens = event}, now);
  }

 private:
  uint64_t ids_ = 0;
};

using Happening = std::function<void(Rig&)>;

// --- what can happen to a rank ------------------------------------------------------------------

inline void SaysItsCacheIsOff(Rig& rig) { rig.facts.prefix_caching = false; }
inline void SaysItsCacheIsOn(Rig& rig) { rig.facts.prefix_caching = true; }
inline void NeverReuses(Rig& rig) {
  rig.Serve(ReuseWatch::kRepeats, {.repeated = 160, .cached = 0, .sent = rig.now});
  rig.Pass(RankTrust::kSettling);
}
inline void Reuses(Rig& rig) {
  rig.Serve(1, {.repeated = 160, .cached = 160, .sent = rig.now});
  rig.Pass(RankTrust::kSettling);
}
inline void ServesInSilence(Rig& rig) {
  rig.Serve(SilenceWatch::kRequests, {.has_block = true, .has_news = true});
  rig.Pass(std::chrono::seconds(5));
}
inline void Speaks(Rig& rig) {
  ++rig.facts.batches;
  rig.Look();
}
inline void ComputesOtherTokens(Rig& rig) {
  for (uint32_t i = 0; i < TokenAgreement::kDoubt / TokenAgreement::kAlone; ++i) {
    rig.Stores({1, 2, 9, 4});
    rig.Pass(TokenAgreement::kPatience);
  }
}
inline void ComputesOurTokens(Rig& rig) { rig.Stores({1, 2, 3, 4}); }
inline void HasUnknownGroups(Rig& rig) { rig.facts.unknown_groups = 2; }
inline void HasKnownGroups(Rig& rig) { rig.facts.unknown_groups = 0; }
inline void LosesBatches(Rig& rig) {
  rig.facts.lost += 3;
  ++rig.facts.gaps;
}
inline void StaysWhole(Rig& rig) {
  rig.Look();
  rig.Pass(GapWatch::kWhole);
}
inline void Comes(Rig& rig, Duration after) {
  for (uint32_t i = 0; i < LagWatch::kLooks; ++i) {
    rig.trust.Lagged(after);
    rig.Pass(std::chrono::milliseconds(250));
  }
}
inline void ComesLate(Rig& rig) { Comes(rig, std::chrono::seconds(5)); }
inline void ComesInTime(Rig& rig) { Comes(rig, std::chrono::milliseconds(20)); }
inline void FindsAQuarter(Rig& rig) {
  rig.Serve(PredictionRecord::kEnough, rig.Predicted(40));
  rig.Pass(RankTrust::kSettling);
}
inline void FindsNothing(Rig& rig) {
  rig.Serve(PredictionRecord::kEnough, rig.Predicted(0));
  rig.Pass(RankTrust::kSettling);
}
inline void FindsItAll(Rig& rig) {
  rig.Serve(PredictionRecord::kEnough, rig.Predicted(160));
  rig.Pass(RankTrust::kSettling);
}
inline void Evicts(Rig& rig) {
  for (uint32_t i = 0; i < ChurnWatch::kRequests; ++i) rig.trust.Returned(100, 0, rig.now);
  rig.Pass(ChurnWatch::kNotBefore);
}
inline void Keeps(Rig& rig) {
  for (uint32_t i = 0; i < ChurnWatch::kRequests; ++i) rig.trust.Returned(0, 100, rig.now);
}
inline void BeginsAnew(Rig& rig) { ++rig.facts.pulse.lives; }

inline Happening Agreed(TrustState state, TrustCause cause = TrustCause::kNone) {
  return [=](Rig& rig) { rig.facts.agreed = {state, cause, rig.now}; };
}
inline Happening Stamp(Duration offset) {
  return [=](Rig& rig) {
    for (uint32_t i = 0; i < LagWatch::kLooks; ++i) {
      rig.trust.Stamped(offset, rig.now);
      rig.Pass(std::chrono::milliseconds(250));
    }
  };
}
inline Happening Passes(Duration duration) {
  return [=](Rig& rig) { rig.Pass(duration); };
}

// Predictions fail for a cause that events do not show.
inline void IsPreempted(Rig& rig) {
  rig.Serve(32, rig.Predicted(0));
  rig.Pass(std::chrono::seconds(1));
  ++rig.facts.preemptions;  // the engine is asked every two seconds
  rig.Pass(RankTrust::kSettling);
}
inline void IsPreemptedAndFindsSome(Rig& rig) {
  rig.Serve(32, rig.Predicted(40));
  ++rig.facts.preemptions;
  rig.Pass(RankTrust::kSettling);
}
inline void WasPreemptedBefore(Rig& rig) {
  ++rig.facts.preemptions;
  rig.Pass(std::chrono::seconds(1));
  FindsNothing(rig);
}
inline Happening Removes(uint64_t blocks, uint32_t found) {
  return [=](Rig& rig) {
    rig.Serve(32, rig.Predicted(found));
    rig.facts.pulse.removed += blocks;
    rig.Pass(RankTrust::kSettling);
  };
}
inline void IsEmptied(Rig& rig) {
  rig.Serve(32, rig.Predicted(0));
  ++rig.facts.pulse.lives;
  rig.Pass(RankTrust::kSettling);
}
// Its counters start again.
inline void IsFollowedAnew(Rig& rig) {
  rig.facts.pulse.removed = 5;
  rig.Serve(32, rig.Predicted(0));
  rig.facts.pulse.removed = 0;
  rig.Pass(RankTrust::kSettling);
}
inline void CountsOtherwise(Rig& rig) {
  ServedRequest request = rig.Predicted(0);
  request.comparable = false;
  rig.Serve(32, request);
  rig.Pass(RankTrust::kSettling);
}
inline void DoesNotSay(Rig& rig) {
  ServedRequest request = rig.Predicted(0);
  request.cached.reset();
  rig.Serve(32, request);
  rig.Pass(RankTrust::kSettling);
}
inline void FindsMore(Rig& rig) {
  rig.Serve(32, {.predicted = 16, .cached = 1600, .sent = rig.now});
  rig.Pass(RankTrust::kSettling);
}
inline void Drifts(Rig& rig, PromptSpace space) {
  ServedRequest request = rig.Predicted(40);
  request.space = space;
  rig.Serve(PredictionRecord::kEnough, request);
  rig.Pass(RankTrust::kSettling);
}

}  // namespace fathom
