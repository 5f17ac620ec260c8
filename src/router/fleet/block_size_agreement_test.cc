#include "router/fleet/block_size_agreement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/test_clock.h"

namespace fathom {
namespace {

using Kind = SizeRemark::Kind;
using std::chrono::seconds;

std::string_view Name(Kind kind) {
  constexpr std::string_view kNames[] = {"agreed",     "cohort",   "silent", "report differs",
                                         "mismatch",   "odd rank", "stale",  "refused",
                                         "readmitted", "conflict", "trusted"};
  return kNames[static_cast<size_t>(kind)];
}

// What happens to a fleet whose workers are called a, b, c... and serve one model.
class Story {
 public:
  explicit Story(const BlockSizeRules& rules = {}) : agreement_(rules, kTestBegin) {}

  Story& Joins(char w, std::string model = "m") {
    agreement_.Join(Id(w), Url(w), now_);
    agreement_.Serves(Id(w), {std::move(model)}, now_);
    return *this;
  }
  Story& Reports(char w, uint32_t size, EngineKind engine = EngineKind::kVllm) {
    agreement_.Reported(Id(w), engine, size, now_);
    return *this;
  }
  Story& Mentions(char w, uint32_t size) {
    agreement_.Reported(Id(w), EngineKind::kVllm, size, now_,
                        BlockSizeAgreement::Learned::kInPassing);
    return *this;
  }
  // True: an interview is needed at once.
  bool Doubts(char w) {
    agreement_.Doubt(Id(w), now_);
    return Interviews();
  }
  bool Interviews() { return !agreement_.Take().interviews.empty(); }
  Story& Answers(char w) {
    agreement_.Answered(Id(w), now_);
    return *this;
  }
  Story& Exceeds(char w, uint32_t at_least) {
    agreement_.Exceeded(Id(w), 0, at_least, now_);
    return *this;
  }
  Story& Fails(char w) {
    agreement_.Failed(Id(w), now_);
    return *this;
  }
  Story& Leaves(char w) {
    agreement_.Leave(Id(w), now_);
    return *this;
  }
  Story& Proves(char w, uint32_t size, uint32_t rank = 0) {
    indexed_ = agreement_.Proven(Id(w), rank, size, now_);
    return *this;
  }
  Story& Resets(char w, uint32_t rank = 0) {
    agreement_.Reset(Id(w), rank, now_);
    return *this;
  }
  Story& Passes(Duration time) {
    now_ += time;
    return Ticks();
  }
  Story& Ticks(bool more = false) {
    agreement_.Tick(now_, more);
    return *this;
  }
  // All workers have joined with these reports, and the start is over.
  Story& Starts(std::vector<std::pair<char, uint32_t>> reports) {
    for (const auto& [w, size] : reports) Joins(w);
    for (const auto& [w, size] : reports) Reports(w, size);
    return Ticks();
  }

  // The remarks since the last call: "agreed 16", "refused b 32 (16)".
  std::vector<std::string> Said() {
    std::vector<std::string> said;
    for (const SizeRemark& r : agreement_.Take().remarks) {
      std::string text{Name(r.kind)};
      if (!r.url.empty()) text += std::string(" ") + r.url.back();
      if (r.rank != 0) text += "/" + std::to_string(r.rank);
      if (r.size != 0) text += (r.at_least ? " >=" : " ") + std::to_string(r.size);
      if (r.other != 0) text += " (" + std::to_string(r.other) + ")";
      if (r.kind == Kind::kAgreed && r.source == SizeSource::kEvents) text += " by events";
      said.push_back(text);
    }
    return said;
  }
  bool indexed() const { return indexed_; }
  Membership Of(char w) const { return agreement_.MembershipOf(Id(w)); }
  Trust TrustOf(char w, uint32_t rank = 0) const { return agreement_.TrustOf(Id(w), rank); }
  BlockSizeAgreement& agreement() { return agreement_; }

  static WorkerId Id(char w) { return WorkerId(static_cast<uint64_t>(w)); }
  static std::string Url(char w) { return std::string("http://") + w; }

 private:
  BlockSizeAgreement agreement_;
  TimePoint now_ = kTestBegin;
  bool indexed_ = false;
};

using Lines = std::vector<std::string>;

// --- the contract, row by row

TEST(BlockSizeAgreement, TakesWhatEveryWorkerReports) {
  Story story;
  story.Joins('a').Joins('b').Reports('a', 32).Ticks();
  EXPECT_TRUE(story.agreement().starting());
  EXPECT_EQ(story.Of('a'), Membership::kHeld) << "nobody is admitted before all have reported";
  EXPECT_EQ(story.TrustOf('a').state, TrustState::kProbing);
  EXPECT_EQ(story.agreement().awaited(), Lines({"http://b"}));
  story.Reports('b', 32).Ticks();
  EXPECT_EQ(story.Said(), Lines({"agreed 32"}));
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted);
  EXPECT_EQ(story.Of('b'), Membership::kAdmitted);
  EXPECT_EQ(story.TrustOf('a').state, TrustState::kLearning);
  story.Proves('a', 32);
  EXPECT_TRUE(story.indexed());
  EXPECT_EQ(story.Said(), Lines({"trusted a 32"}));
  EXPECT_EQ(story.TrustOf('a').state, TrustState::kTrusted);
  EXPECT_EQ(story.TrustOf('b').state, TrustState::kLearning);
}

TEST(BlockSizeAgreement, ServesByLoadWhoCannotReportUntilItsFirstEvent) {
  Story story;
  story.Starts({{'a', 0}});
  EXPECT_EQ(story.Said(), Lines({"silent a"}));
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted) << "its events need a first request";
  story.Reports('a', 0).Proves('a', 64);
  EXPECT_EQ(story.Said(), Lines({"agreed 64 by events", "trusted a 64"}));
}

TEST(BlockSizeAgreement, WaitsForTheFirstReportNoLongerThanItMust) {
  Story story({.wait = seconds(3)});
  story.Joins('a').Joins('b').Reports('b', 0).Passes(seconds(2));
  EXPECT_TRUE(story.agreement().starting());
  story.Passes(seconds(1));
  EXPECT_FALSE(story.agreement().starting());
  EXPECT_EQ(story.Of('a'), Membership::kHeld) << "it is still being asked";
  EXPECT_EQ(story.Of('b'), Membership::kAdmitted);
}

// One worker that hangs must not hold back the requests that another can serve.
TEST(BlockSizeAgreement, GivesTheOthersAShortGraceOnceOneHasReported) {
  Story story;
  story.Joins('a').Joins('b').Passes(seconds(5)).Reports('a', 16);
  story.Passes(BlockSizeAgreement::kGrace / 2);
  EXPECT_TRUE(story.agreement().starting());
  story.Passes(BlockSizeAgreement::kGrace / 2);
  EXPECT_FALSE(story.agreement().starting());
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted);
  EXPECT_EQ(story.Of('b'), Membership::kHeld) << "it is still being asked";
  story.Reports('b', 16);
  EXPECT_EQ(story.Of('b'), Membership::kAdmitted);
}

TEST(BlockSizeAgreement, EndsItsStartSoonAfterTheFirstEventToo) {
  Story story;
  story.Joins('a').Joins('b').Reports('a', 0).Proves('a', 32).Passes(BlockSizeAgreement::kGrace);
  EXPECT_FALSE(story.agreement().starting());
}

TEST(BlockSizeAgreement, TreatsWhoReportsAfterTheGraceAsALateJoiner) {
  Story story;
  story.Joins('a').Joins('b').Reports('a', 16).Passes(BlockSizeAgreement::kGrace);
  story.Reports('b', 32);
  EXPECT_FALSE(story.agreement().refused_to_start());
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted);
  EXPECT_EQ(story.Of('b'), Membership::kRefused);
}

TEST(BlockSizeAgreement, DoesNotWaitForWhoHasFailed) {
  Story story;
  story.Joins('a').Joins('b').Reports('a', 16).Fails('b').Ticks();
  EXPECT_FALSE(story.agreement().starting());
  EXPECT_EQ(story.TrustOf('b').cause, TrustCause::kUnhealthy);
}

TEST(BlockSizeAgreement, WaitsForNamesThatAreStillLookedUp) {
  Story story;
  story.Ticks(true);
  EXPECT_TRUE(story.agreement().starting());
  story.Starts({{'a', 16}, {'b', 32}});
  EXPECT_TRUE(story.agreement().refused_to_start());
}

TEST(BlockSizeAgreement, RefusesToStartWhenWorkersDisagree) {
  Story story;
  story.Joins('a').Joins('b').Joins('c').Joins('z', "another");
  story.Reports('a', 16).Reports('b', 32, EngineKind::kTrtllm).Reports('c', 0).Reports('z', 64);
  story.Ticks();
  EXPECT_TRUE(story.agreement().refused_to_start());
  const auto outcome = story.agreement().Take();
  ASSERT_EQ(outcome.remarks.size(), 2u);  // the other one: c is silent
  const SizeRemark& remark = outcome.remarks.back();
  EXPECT_EQ(remark.kind, Kind::kConflictAtStart);
  const std::vector<SizeRemark::Claim> claims = {
      {"http://a", EngineKind::kVllm, 16, SizeSource::kReport},
      {"http://b", EngineKind::kTrtllm, 32, SizeSource::kReport}};
  EXPECT_EQ(remark.claims, claims);
  for (const char w : {'a', 'b', 'c', 'z'}) EXPECT_EQ(story.Of(w), Membership::kHeld);
  story.Reports('b', 16);
  EXPECT_EQ(story.Said(), Lines()) << "it is over";
}

TEST(BlockSizeAgreement, ServesEachModelWithItsOwnSize) {
  Story story;
  story.Joins('a', "m").Joins('b', "n").Reports('a', 16).Reports('b', 32).Ticks();
  EXPECT_EQ(story.Said(), Lines({"agreed 16", "agreed 32"}));
  EXPECT_EQ(story.Of('b'), Membership::kAdmitted);
}

TEST(BlockSizeAgreement, HasACohortForEachSizeInAMixedFleet) {
  Story story({.mixed = true});
  story.Starts({{'a', 16}, {'b', 32}, {'c', 16}});
  EXPECT_EQ(story.Said(), Lines({"cohort 16", "cohort 32"}));
  story.Proves('a', 16).Proves('b', 32);
  EXPECT_EQ(story.Said(), Lines({"trusted a 16", "trusted b 32"}));
  story.Joins('d').Reports('d', 2096);
  EXPECT_EQ(story.Said(), Lines({"cohort 2096"}));
  EXPECT_EQ(story.Of('d'), Membership::kAdmitted);
}

TEST(BlockSizeAgreement, DoesNotAdmitWhoDisagreesWithARunningFleet) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}}).Said();
  story.Joins('c').Reports('c', 32);
  EXPECT_EQ(story.Said(), Lines({"refused c 32 (16)"}));
  EXPECT_EQ(story.Of('c'), Membership::kRefused);
  EXPECT_EQ(story.TrustOf('c').cause, TrustCause::kBlockSizeConflict);
  EXPECT_EQ(story.agreement().MismatchesOf(Story::Id('c')).at({16, 32}), 1u);
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted) << "the running fleet is untouched";
  story.Proves('c', 32);
  EXPECT_FALSE(story.indexed());
  EXPECT_EQ(story.Said(), Lines()) << "it has been said";
}

TEST(BlockSizeAgreement, DoesNotKeepWhoShowsOnlyByEventsThatItDisagrees) {
  Story story;
  story.Starts({{'a', 16}}).Said();
  story.Joins('b').Reports('b', 0);
  EXPECT_EQ(story.Of('b'), Membership::kAdmitted);
  story.Proves('b', 32);
  EXPECT_FALSE(story.indexed());
  EXPECT_EQ(story.Said(), Lines({"silent b", "refused b 32 (16)"}));
  story.Proves('a', 16);
  EXPECT_TRUE(story.indexed()) << "a newcomer does not overturn what was reported before";
}

TEST(BlockSizeAgreement, AdmitsManyNewcomersOnlyOnceNobodyHasTheOldSize) {
  Story story;
  story.Starts({{'a', 16}}).Said();
  for (const char w : {'b', 'c', 'd'}) story.Joins(w).Reports(w, 32);
  for (const char w : {'b', 'c', 'd'}) EXPECT_EQ(story.Of(w), Membership::kRefused);
  story.Said();
  story.Leaves('a');
  EXPECT_EQ(story.Said(), Lines({"agreed 32", "readmitted b", "readmitted c", "readmitted d"}));
}

TEST(BlockSizeAgreement, ObeysASettingAndWarnsAboutAReportThatDiffers) {
  Story story({.configured = 16});
  story.Starts({{'a', 32}, {'b', 16}});
  EXPECT_EQ(story.Said(), Lines({"report differs a 32 (16)"}));
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted) << "it is served, by load";
  story.Reports('a', 32);
  EXPECT_EQ(story.Said(), Lines()) << "once";
  story.Proves('b', 16);
  EXPECT_TRUE(story.indexed());
}

TEST(BlockSizeAgreement, WaitsForTheOtherReportsBeforeItAdvises) {
  Story story({.configured = 16});
  story.Joins('a').Joins('b').Joins('c').Reports('a', 32);
  EXPECT_EQ(story.Said(), Lines()) << "b and c may have another size";
  story.Reports('b', 16).Fails('c').Ticks();
  const auto remarks = story.agreement().Take().remarks;
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].kind, Kind::kReportDiffers);
  EXPECT_EQ(remarks[0].others, SizeRemark::Others::kDiffer) << "b would lose its cache";
}

TEST(BlockSizeAgreement, DoesNotWaitLongForTheOtherReports) {
  Story story({.configured = 16});
  story.Joins('a').Joins('b').Reports('a', 32);
  EXPECT_EQ(story.Said(), Lines());
  story.Passes(BlockSizeAgreement::kCalm);
  EXPECT_EQ(story.Said(), Lines({"report differs a 32 (16)"}));
}

TEST(BlockSizeAgreement, SaysTheMismatchOncePerRankAndConnection) {
  Story story({.configured = 16});
  story.Starts({{'a', 0}}).Said();
  story.Proves('a', 32).Proves('a', 32);
  EXPECT_FALSE(story.indexed());
  EXPECT_EQ(story.Said(), Lines({"mismatch a 32 (16)"}));
  EXPECT_EQ(story.TrustOf('a').state, TrustState::kDoubted);
  EXPECT_EQ(story.TrustOf('a').cause, TrustCause::kBlockSizeMismatch);
  story.Proves('a', 32, 1);
  EXPECT_EQ(story.Said(), Lines({"mismatch a/1 32 (16)"}));
  story.Resets('a').Proves('a', 32);
  EXPECT_EQ(story.Said(), Lines({"mismatch a 32 (16)"}));
  story.Resets('a').Proves('a', 16);
  EXPECT_EQ(story.Said(), Lines({"trusted a 16"}));
}

TEST(BlockSizeAgreement, SaysRarelyWhatHappensOverAndOver) {
  Story story({.configured = 16});
  story.Starts({{'a', 0}}).Said();
  for (int i = 0; i < 1000; ++i) story.Resets('a').Proves('a', 32);
  EXPECT_EQ(story.Said().size(), BlockSizeAgreement::kRepeats.freely);
  story.Passes(BlockSizeAgreement::kRepeats.pause).Resets('a').Proves('a', 32);
  EXPECT_EQ(story.Said(), Lines({"mismatch a 32 (16)"}));
}

TEST(BlockSizeAgreement, BeginsAnewForAWorkerThatRestartsWithAnotherSize) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}}).Proves('a', 16).Proves('b', 16).Said();
  story.Resets('b').Fails('b').Reports('b', 64);
  EXPECT_EQ(story.Said(), Lines({"refused b 64 (16)"}));
  story.Fails('b').Reports('b', 16);
  EXPECT_EQ(story.Of('b'), Membership::kAdmitted);
  story.Proves('b', 16);
  EXPECT_EQ(story.Said(), Lines({"trusted b 16"}));
}

TEST(BlockSizeAgreement, NoticesARestartByEventsAlone) {
  Story story;
  story.Starts({{'a', 0}, {'b', 0}}).Proves('a', 16).Proves('b', 16).Said();
  story.Resets('b').Proves('b', 64);
  EXPECT_EQ(story.Said(), Lines({"refused b 64 (16)"}));
  story.Resets('b').Proves('b', 16);
  EXPECT_EQ(story.Said(), Lines({"readmitted b", "trusted b 16"}));
}

TEST(BlockSizeAgreement, LetsTheOnlyWorkerHaveAnySize) {
  Story story;
  story.Starts({{'a', 16}}).Proves('a', 16).Said();
  story.Resets('a').Reports('a', 32).Proves('a', 32);
  EXPECT_EQ(story.Said(), Lines({"agreed 32", "trusted a 32"}));
  EXPECT_TRUE(story.indexed());
}

TEST(BlockSizeAgreement, KeepsItsSizeWhileThoseWhoHaveItAreAwayForAWhile) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}}).Proves('a', 16).Proves('b', 16);
  story.Joins('c').Reports('c', 32).Said();
  story.Fails('a').Fails('b').Passes(seconds(10));
  EXPECT_EQ(story.Said(), Lines());
  EXPECT_EQ(story.Of('c'), Membership::kRefused) << "an outage does not change what is right";
  story.Answers('a').Reports('a', 16).Proves('a', 16);
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted);
  story.Fails('a').Passes(BlockSizeAgreement::kLongAway);
  EXPECT_EQ(story.Of('c'), Membership::kAdmitted) << "nobody is left who had the other size";
}

TEST(BlockSizeAgreement, DoesNotTakeAnotherProcessesEventsForItsOwn) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}}).Proves('a', 16).Proves('b', 16).Said();
  story.Fails('b').Answers('b').Reports('b', 32);  // its event stream is not reset yet
  EXPECT_EQ(story.Said(), Lines({"refused b 32 (16)"}));
  story.Resets('b');
  EXPECT_EQ(story.Of('b'), Membership::kRefused);
}

TEST(BlockSizeAgreement, SaysOnceThatAWorkerIsRefusedThoughItFailsHealthChecksNowAndThen) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}}).Proves('a', 16).Proves('b', 16).Said();
  story.Fails('b').Answers('b').Reports('b', 32).Resets('b');
  EXPECT_EQ(story.Said(), Lines({"refused b 32 (16)"}));
  for (int i = 0; i < 3; ++i) {
    story.Fails('b').Answers('b').Reports('b', 32);
    EXPECT_EQ(story.Of('b'), Membership::kRefused);
  }
  EXPECT_EQ(story.Said(), Lines());
  story.Fails('b').Answers('b').Reports('b', 64);
  EXPECT_EQ(story.Said(), Lines({"refused b 64 (16)"}));
}

TEST(BlockSizeAgreement, DoesNotLetAQuickRestartOverturnWhatOthersReported) {
  for (const bool report_first : {false, true}) {
    Story story;
    story.Starts({{'a', 32}, {'b', 32}}).Proves('b', 32).Said();
    story.Resets('b');
    if (report_first) story.Reports('b', 16);
    story.Proves('b', 16);
    EXPECT_EQ(story.Of('b'), Membership::kRefused);
    EXPECT_EQ(story.Of('a'), Membership::kAdmitted);
    story.Proves('a', 32);
    EXPECT_TRUE(story.indexed());
  }
}

TEST(BlockSizeAgreement, KnowsARestartByAReportThatChanges) {
  Story story;
  story.Starts({{'a', 32}, {'b', 32}}).Proves('b', 32).Said();
  story.Reports('b', 16);  // its old event stream is not reset yet
  EXPECT_EQ(story.Said(), Lines({"refused b 16 (32)"}));
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted);
}

TEST(BlockSizeAgreement, AdmitsAfterTheWaitWhoTakesLongToReport) {
  Story story({.wait = seconds(2)});
  story.Starts({{'a', 16}}).Said();
  story.Joins('b').Answers('b').Passes(seconds(1));
  EXPECT_EQ(story.Of('b'), Membership::kHeld);
  story.Passes(seconds(1));
  EXPECT_EQ(story.Of('b'), Membership::kAdmitted);
  EXPECT_EQ(story.Said(), Lines({"silent b"}));
  story.Reports('b', 32);
  EXPECT_EQ(story.Said(), Lines({"refused b 32 (16)"}));
}

TEST(BlockSizeAgreement, WaitsForNobodyWhenTheSizeIsSet) {
  Story story({.configured = 16});
  story.Joins('a').Ticks();
  EXPECT_FALSE(story.agreement().starting());
  story.Answers('a');
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted);
}

TEST(BlockSizeAgreement, SaysThatBlocksAreTooLargeBeforeItKnowsHowLarge) {
  Story story({.configured = 16});
  story.Starts({{'a', 0}}).Said();
  story.Exceeds('a', 20);
  EXPECT_EQ(story.Said(), Lines({"mismatch a >=20 (16)"}));
  EXPECT_EQ(story.TrustOf('a').state, TrustState::kDoubted);
  story.Proves('a', 32);
  EXPECT_EQ(story.Said(), Lines()) << "once per connection";
  Story told({.configured = 16});
  told.Starts({{'a', 32}}).Said();
  told.Exceeds('a', 20);
  EXPECT_EQ(told.Said(), Lines({"mismatch a 32 (16)"})) << "the report says how large";
}

TEST(BlockSizeAgreement, KnowsTheEngineBeforeItSaysWhatToConfigure) {
  Story story({.configured = 16});
  story.Joins('a').Proves('a', 32).Ticks();
  EXPECT_EQ(story.Said(), Lines()) << "nobody knows what it is";
  story.Answers('a').Reports('a', 0, EngineKind::kTrtllm);
  const auto outcome = story.agreement().Take();
  ASSERT_EQ(outcome.remarks.size(), 1u);
  EXPECT_EQ(outcome.remarks[0].kind, Kind::kMismatch);
}

TEST(BlockSizeAgreement, SaysOnceWhatConcernsAllNamesOfAModel) {
  Story story;
  for (const char w : {'a', 'b'}) {
    story.agreement().Join(Story::Id(w), Story::Url(w), kTestBegin);
    story.agreement().Serves(Story::Id(w), {"m", "m-large", "m-latest"}, kTestBegin);
  }
  story.Reports('a', 16).Reports('b', 16).Ticks();
  const auto remarks = story.agreement().Take().remarks;
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].model, "m, m-large, m-latest");
}

TEST(BlockSizeAgreement, TiresOfASizeThatChangesAllTheTime) {
  Story story;
  story.Starts({{'a', 0}}).Said();
  for (uint32_t i = 0; i < 500; ++i) story.Proves('a', i % 2 == 0 ? 16 : 32);
  EXPECT_LT(story.Said().size(), 20u);
}

// --- reports that are wrong

TEST(BlockSizeAgreement, BelievesEventsMoreThanReports) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}}).Said();
  story.Proves('a', 32);
  EXPECT_TRUE(story.indexed());
  EXPECT_EQ(story.Said(), Lines({"stale a 32 (16)", "agreed 32 by events", "trusted a 32"}));
  EXPECT_EQ(story.Of('b'), Membership::kAdmitted) << "its report may be as wrong";
  story.Proves('b', 32);
  EXPECT_EQ(story.Said(), Lines({"stale b 32 (16)", "trusted b 32"}));
}

TEST(BlockSizeAgreement, DoesNotHoldTheSameStaleReportAgainstANewcomer) {
  Story story;
  story.Starts({{'a', 16}}).Proves('a', 32).Said();
  story.Joins('b').Reports('b', 16);
  EXPECT_EQ(story.Of('b'), Membership::kAdmitted);
  EXPECT_EQ(story.Said(), Lines());
  story.Joins('c').Reports('c', 16, EngineKind::kSglang);
  EXPECT_EQ(story.Said(), Lines({"refused c 16 (32)"})) << "another engine's word is good";
}

TEST(BlockSizeAgreement, FollowsTheMostWhenOneReportIsStale) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}, {'c', 16}}).Said();
  story.Proves('a', 32).Proves('b', 16);
  EXPECT_TRUE(story.indexed());
  const Lines said = story.Said();
  EXPECT_EQ(said.back(), "trusted b 16");
  EXPECT_EQ(story.Of('a'), Membership::kRefused);
  EXPECT_EQ(story.Of('c'), Membership::kAdmitted);
}

TEST(BlockSizeAgreement, SaysOnceThatAReportIsStaleAcrossGaps) {
  Story story;
  story.Starts({{'a', 16}}).Proves('a', 32).Said();
  story.Resets('a').Proves('a', 32);
  EXPECT_EQ(story.Said(), Lines());
  EXPECT_EQ(story.TrustOf('a').state, TrustState::kTrusted);
}

TEST(BlockSizeAgreement, UsesEventsThatCameDuringTheStart) {
  Story story;
  story.Joins('a').Joins('b').Proves('a', 32).Reports('a', 16).Reports('b', 32).Ticks();
  EXPECT_FALSE(story.agreement().refused_to_start());
  const Lines said = story.Said();
  EXPECT_EQ(std::ranges::count(said, "agreed 32 by events"), 1);
}

TEST(BlockSizeAgreement, DoubtsOneRankOfAWorkerThatDiffersFromItsOthers) {
  Story story;
  story.Starts({{'a', 16}}).Proves('a', 16, 0).Said();
  story.Proves('a', 32, 1);
  EXPECT_FALSE(story.indexed());
  EXPECT_EQ(story.Said(), Lines({"odd rank a/1 32 (16)"}));
  EXPECT_EQ(story.TrustOf('a', 0).state, TrustState::kTrusted);
  EXPECT_EQ(story.TrustOf('a', 1).state, TrustState::kDoubted);
}

TEST(BlockSizeAgreement, BoundsWhatAWorkerMakesItRemember) {
  Story story({.configured = 16});
  story.Starts({{'a', 16}});
  for (uint32_t i = 0; i < 10'000; ++i) {
    story.agreement().Proven(Story::Id('a'), i, 32, kTestBegin);
    story.agreement().CountMismatch(Story::Id('a'), i);
  }
  EXPECT_LE(story.agreement().MismatchesOf(Story::Id('a')).size(), BlockSizeAgreement::kMostCounts);
  EXPECT_LE(story.Said().size(), BlockSizeAgreement::kMostRanks + 1);
}

// --- another process may be at a worker's address

TEST(BlockSizeAgreement, HoldsADoubtedWorkerUntilItsInterview) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}}).Proves('a', 16);
  EXPECT_TRUE(story.Doubts('a'));
  EXPECT_EQ(story.Of('a'), Membership::kHeld);
  EXPECT_FALSE(story.Doubts('a')) << "it is being interviewed";
  story.Mentions('a', 16);
  EXPECT_EQ(story.Of('a'), Membership::kHeld) << "that may be its predecessor's report";
  story.Reports('a', 32);
  EXPECT_EQ(story.Of('a'), Membership::kRefused);
  EXPECT_EQ(story.Of('b'), Membership::kAdmitted);
}

TEST(BlockSizeAgreement, AdmitsADoubtedWorkerThatIsTheSame) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}}).Proves('a', 16).Said();
  ASSERT_TRUE(story.Doubts('a'));
  story.Reports('a', 16);
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted);
  EXPECT_EQ(story.TrustOf('a').state, TrustState::kTrusted);
  EXPECT_EQ(story.Said(), Lines()) << "nothing has changed";
  story.Passes(BlockSizeAgreement::kCalm);
  EXPECT_FALSE(story.Interviews()) << "there was no doubt since then";
  EXPECT_TRUE(story.Doubts('a'));
}

TEST(BlockSizeAgreement, InterviewsLaterAWorkerThatIsDoubtedJustAfterItsInterview) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}}).Proves('a', 16).Said();
  ASSERT_TRUE(story.Doubts('a'));
  story.Reports('a', 16);
  EXPECT_FALSE(story.Doubts('a')) << "it was interviewed just now";
  EXPECT_FALSE(story.Doubts('a'));
  EXPECT_EQ(story.Of('a'), Membership::kAdmitted);
  story.Passes(BlockSizeAgreement::kCalm / 2);
  EXPECT_FALSE(story.Interviews());
  story.Passes(BlockSizeAgreement::kCalm / 2);
  EXPECT_EQ(story.Of('a'), Membership::kHeld);
  EXPECT_TRUE(story.Interviews());
  story.Reports('a', 32);
  EXPECT_EQ(story.Of('a'), Membership::kRefused);
}

// The answers may have been the first process's, and the second doubt the end of it.
TEST(BlockSizeAgreement, InterviewsAgainAWorkerThatIsDoubtedDuringItsInterview) {
  Story story;
  story.Starts({{'a', 16}, {'b', 16}}).Proves('a', 16).Said();
  ASSERT_TRUE(story.Doubts('a'));
  EXPECT_FALSE(story.Doubts('a'));
  story.Reports('a', 16).Passes(BlockSizeAgreement::kCalm);
  EXPECT_TRUE(story.Interviews());
}

TEST(BlockSizeAgreement, DoubtsNobodyWhereSizesNeedNotAgree) {
  Story mixed({.mixed = true});
  mixed.Starts({{'a', 16}});
  EXPECT_FALSE(mixed.Doubts('a'));
  Story configured({.configured = 16});
  configured.Starts({{'a', 16}});
  EXPECT_FALSE(configured.Doubts('a'));
  Story starting;
  starting.Joins('a').Joins('b').Reports('a', 16);
  EXPECT_FALSE(starting.Doubts('a'));
  EXPECT_FALSE(starting.Doubts('x'));
}

}  // namespace
}  // namespace fathom
