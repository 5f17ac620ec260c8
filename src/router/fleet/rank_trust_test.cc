#include "router/fleet/rank_trust.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/rank_trust_rig.h"
#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using enum TrustState;
using enum TrustCause;

struct TrustRow {
  std::string what;
  std::vector<Happening> happens;
  TrustState state;
  TrustCause cause = kNone;
  double credit = 1;
};

void CheckTrust(const TrustRow& row) {
  Rig rig;
  for (const Happening& happening : row.happens) happening(rig);
  rig.Look();
  const Judgement& j = rig.judgement;
  EXPECT_EQ(Name(j.trust.state), Name(row.state)) << row.what;
  EXPECT_EQ(Name(j.trust.cause), Name(row.cause)) << row.what;
  EXPECT_DOUBLE_EQ(j.credit[0], row.credit) << row.what;
  const bool found = row.state == kDoubted && row.cause != kBlockSizeMismatch;
  EXPECT_EQ(j.evidence.index() != 0, found) << row.what;
}

TEST(RankTrust, FindsEachCauseAndItsEnd) {
  const TrustRow rows[] = {
      {"all is well", {}, kTrusted},
      {"no event yet", {Agreed(kLearning)}, kLearning},
      {"not known yet", {Agreed(kProbing)}, kProbing},

      {"it says that its cache is off", {SaysItsCacheIsOff}, kDoubted, kPrefixCachingOff, 0},
      {"and then on", {SaysItsCacheIsOff, SaysItsCacheIsOn}, kTrusted},
      {"it reuses nothing", {NeverReuses}, kDoubted, kPrefixCachingOff, 0},
      {"it reuses after all", {NeverReuses, Reuses}, kTrusted},
      {"another process", {NeverReuses, BeginsAnew}, kTrusted},
      {"it did reuse something", {Reuses, NeverReuses}, kTrusted},

      {"silence", {ServesInSilence}, kDoubted, kNoEvents, 0},
      {"of one that has not spoken yet",
       {Agreed(kLearning), ServesInSilence},
       kDoubted,
       kNoEvents,
       0},
      {"of one that has", {Speaks, ServesInSilence}, kDoubted, kNoEvents, 0},
      {"it speaks again", {ServesInSilence, Speaks}, kTrusted},

      {"other tokens", {ComputesOtherTokens}, kDoubted, kTokensDiffer, 0},
      {"ours again", {ComputesOtherTokens, ComputesOurTokens}, kTrusted},
      {"another process", {ComputesOtherTokens, BeginsAnew}, kTrusted},

      {"unknown groups", {HasUnknownGroups}, kDoubted, kUnsupportedGroups},
      {"no longer", {HasUnknownGroups, HasKnownGroups}, kTrusted},

      {"lost batches", {LosesBatches}, kDoubted, kEventGap},
      {"whole for a while", {LosesBatches, StaysWhole}, kTrusted},
      {"and lost again", {LosesBatches, StaysWhole, LosesBatches}, kDoubted, kEventGap},

      {"late", {ComesLate}, kDoubted, kEventLag, 0.5},
      {"in time again", {ComesLate, ComesInTime}, kTrusted},
      {"one late event in good ones",
       {ComesInTime, [](Rig& r) { r.trust.Lagged(minutes(1)); }},
       kTrusted},

      {"behind its own clock", {Stamp(hours(1)), Stamp(hours(2))}, kDoubted, kEventLag, 0.5},
      {"another clock",
       {Stamp(hours(1)), BeginsAnew, Passes(seconds(1)), Stamp(hours(2))},
       kTrusted},

      {"a quarter is found", {FindsAQuarter}, kDoubted, kPredictionDrift, 0.25},
      {"nothing", {FindsNothing}, kDoubted, kPredictionDrift, 0},
      {"borne out again", {FindsAQuarter, FindsItAll}, kTrusted},
      {"and again", {FindsAQuarter, FindsItAll, FindsItAll}, kTrusted},
      {"another process", {FindsAQuarter, BeginsAnew}, kTrusted},

      {"churn", {Evicts}, kDoubted, kChurn},
      {"it keeps them again", {Evicts, Keeps}, kTrusted},
      {"nobody comes any more", {Evicts, Passes(minutes(3))}, kTrusted},
  };
  for (const TrustRow& row : rows) CheckTrust(row);
}

TEST(RankTrust, DoesNotCountWhatIsHonest) {
  const TrustRow rows[] = {
      {"preempted requests report nothing", {IsPreempted}, kTrusted},
      {"it left before the answer", {Removes(10, 0)}, kTrusted},
      {"it was emptied", {IsEmptied}, kTrusted},
      {"it is followed anew", {IsFollowedAnew}, kTrusted},
      {"which clears nobody", {FindsAQuarter, IsFollowedAnew}, kDoubted, kPredictionDrift, 0.25},
      {"several choices, or log probabilities", {CountsOtherwise}, kTrusted},
      {"the engine does not say", {DoesNotSay}, kTrusted},
      {"it finds more", {FindsMore}, kTrusted},
      // And what does not excuse it.
      {"a preempted request that reports something",
       {IsPreemptedAndFindsSome},
       kDoubted,
       kPredictionDrift,
       0.25},
      {"a preemption before it was sent", {WasPreemptedBefore}, kDoubted, kPredictionDrift, 0},
      {"fewer left than are missing", {Removes(5, 0)}, kDoubted, kPredictionDrift, 0.5},
      {"removals before it was sent",
       {Removes(100, 160), FindsAQuarter, FindsAQuarter},
       kDoubted,
       kPredictionDrift,
       0.25},
  };
  for (const TrustRow& row : rows) CheckTrust(row);
}

TEST(RankTrust, PutsBlockSizesAndHealthAboveAll) {
  const TrustRow rows[] = {
      {"",
       {SaysItsCacheIsOff, Agreed(kDoubted, kBlockSizeMismatch)},
       kDoubted,
       kBlockSizeMismatch,
       0},
      {"", {ServesInSilence, Agreed(kExcluded, kBlockSizeConflict)}, kExcluded, kBlockSizeConflict},
      {"", {ComesLate, Agreed(kExcluded, kUnhealthy)}, kExcluded, kUnhealthy},
      {"", {HasUnknownGroups, Agreed(kProbing)}, kProbing},
      {"",
       {HasUnknownGroups, Agreed(kExcluded, kUnhealthy), Agreed(kTrusted)},
       kDoubted,
       kUnsupportedGroups},
  };
  for (const TrustRow& row : rows) CheckTrust(row);
}

// Of all causes that hold, the deepest is reported.
TEST(RankTrust, NamesTheDeepestOfTwoCauses) {
  struct Cause {
    TrustCause cause;
    Happening happens;
    int when;  // slow causes come first, so that the others still hold
  };
  const std::vector<Cause> by_depth = {
      {kPrefixCachingOff, SaysItsCacheIsOff, 2},
      {kNoEvents, ServesInSilence, 2},
      {kTokensDiffer, ComputesOtherTokens, 0},
      {kUnsupportedGroups, HasUnknownGroups, 2},
      {kEventGap, LosesBatches, 3},
      {kEventLag, ComesLate, 2},
      {kPredictionDrift, FindsAQuarter, 2},
      {kChurn, Evicts, 1},
  };
  for (size_t deep = 0; deep < by_depth.size(); ++deep) {
    for (size_t other = deep + 1; other < by_depth.size(); ++other) {
      const Cause& a = by_depth[deep];
      const Cause& b = by_depth[other];
      Rig rig;
      (a.when <= b.when ? a : b).happens(rig);
      (a.when <= b.when ? b : a).happens(rig);
      rig.Look();
      EXPECT_EQ(Name(rig.judgement.trust.cause), Name(a.cause)) << "with " << Name(b.cause);
    }
  }
}

// The shallower cause is kept while the deeper one is reported.
TEST(RankTrust, NamesTheNextCauseWhenTheDeepestIsMended) {
  Rig rig;
  FindsAQuarter(rig);
  ServesInSilence(rig);
  EXPECT_EQ(rig.judgement.trust.cause, kNoEvents);
  Speaks(rig);
  rig.Look();
  EXPECT_EQ(rig.judgement.trust.cause, kPredictionDrift);
}

TEST(RankTrust, TellsTheEvidence) {
  Rig rig;
  LosesBatches(rig);
  rig.facts.repaired = 7;
  rig.Look();
  const auto& gap = std::get<LostBatches>(rig.judgement.evidence);
  EXPECT_EQ(gap.lost, 3u);
  EXPECT_EQ(gap.gaps, 1u);
  EXPECT_EQ(gap.repaired, 7u);

  Rig drifts;
  FindsItAll(drifts);
  Drifts(drifts, PromptSpace::kSalted);
  const auto& drift = std::get<PredictionDrift>(drifts.judgement.evidence);
  EXPECT_EQ(drift.space, PromptSpace::kSalted);
  EXPECT_TRUE(drift.others_fine);
  EXPECT_EQ(drift.requests, PredictionRecord::kEnough);
  EXPECT_EQ(drift.predicted, 160 * PredictionRecord::kEnough);
  EXPECT_EQ(drift.cached, 40 * PredictionRecord::kEnough);
  EXPECT_EQ(drifts.judgement.credit, (std::array<double, kPromptSpaces>{1, 1, 0.25}));
}

TEST(RankTrust, WaitsBeforeItJudgesARequest) {
  Rig rig;
  rig.Serve(32, rig.Predicted(40));
  rig.Pass(RankTrust::kSettling - milliseconds(250));
  EXPECT_EQ(rig.judgement.trust.state, kTrusted);
  rig.Pass(milliseconds(250));
  EXPECT_EQ(rig.judgement.trust.state, kDoubted);
}

TEST(RankTrust, TellsSinceWhen) {
  Rig rig;
  EXPECT_EQ(rig.judgement.trust.since, kTestBegin);
  rig.Pass(seconds(30));
  EXPECT_EQ(rig.judgement.trust.since, kTestBegin);
  HasUnknownGroups(rig);
  rig.Look();
  const TimePoint doubted = rig.now;
  rig.Pass(seconds(30));
  EXPECT_EQ(rig.judgement.trust.since, doubted);
  SaysItsCacheIsOff(rig);  // another cause is another doubt
  rig.Look();
  EXPECT_EQ(rig.judgement.trust.since, rig.now);
  SaysItsCacheIsOn(rig);
  HasKnownGroups(rig);
  rig.Pass(seconds(1));
  EXPECT_EQ(rig.judgement.trust.since, rig.now - milliseconds(750));
}

TEST(RankTrust, CountsTheCostSinceTheChangeAndShortlyBefore) {
  Rig rig;
  rig.trust.Wasted(1000, rig.now);
  rig.Pass(3 * WasteAccount::kReach);
  rig.trust.Wasted(100, rig.now);
  HasUnknownGroups(rig);
  rig.Look();
  EXPECT_EQ(rig.judgement.cost, 100u);
  rig.trust.Wasted(10, rig.now);
  rig.Pass(3 * WasteAccount::kReach);
  EXPECT_EQ(rig.judgement.cost, 110u) << "a doubt that lasts adds up";
  rig.trust.Wasted(1, rig.now);
  HasKnownGroups(rig);
  rig.Look();
  EXPECT_EQ(rig.judgement.cost, 1u);
}

// The oldest is dropped unjudged: here the only one that shows that the cache is used.
TEST(RankTrust, KeepsNoMoreThanSoManyUnsettledRequests) {
  for (const bool one_too_many : {false, true}) {
    Rig rig;
    rig.Serve(1, {.repeated = 160, .cached = 160});
    rig.Serve(RankTrust::kMostUnsettled - 1 + (one_too_many ? 1 : 0),
              {.repeated = 160, .cached = 0});
    rig.Pass(RankTrust::kSettling);
    EXPECT_EQ(rig.judgement.trust.cause, one_too_many ? kPrefixCachingOff : kNone);
  }
}

}  // namespace
}  // namespace fathom
