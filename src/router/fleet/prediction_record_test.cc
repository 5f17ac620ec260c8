#include "router/fleet/prediction_record.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fathom {
namespace {

using enum PromptSpace;

constexpr PredictionRecord::Outcome kFound{.predicted = 100, .cached = 100};
constexpr PredictionRecord::Outcome kMissing{.predicted = 100, .missing = 100};
constexpr PredictionRecord::Outcome kSurprise{.cached = 100, .unforeseen = 100};

void Add(PredictionRecord& record, PromptSpace space, size_t times,
         const PredictionRecord::Outcome& outcome) {
  for (size_t i = 0; i < times; ++i) record.Add(space, outcome);
}

TEST(PredictionRecord, DoubtsNobodyForAFewPredictions) {
  PredictionRecord record;
  Add(record, kPlain, PredictionRecord::kEnough - 1, kMissing);
  EXPECT_FALSE(record.Look());
  EXPECT_EQ(record.Credit(kPlain), 1);
  record.Add(kPlain, kMissing);
  ASSERT_TRUE(record.Look());
  EXPECT_EQ(record.Credit(kPlain), 0);
}

TEST(PredictionRecord, ForgivesASmallShare) {
  PredictionRecord record;
  for (int i = 0; i < 100; ++i) {
    record.Add(kPlain, {.predicted = 100, .cached = 76, .missing = 24});
    ASSERT_FALSE(record.Look());
  }
  for (int i = 0; i < 100 && !record.Look(); ++i) {
    record.Add(kPlain, {.predicted = 100, .cached = 70, .missing = 30});
  }
  EXPECT_TRUE(record.Look());
  EXPECT_NEAR(record.Credit(kPlain), 0.7, 0.05);
}

TEST(PredictionRecord, RecoversOnceAndForAll) {
  PredictionRecord record;
  Add(record, kPlain, PredictionRecord::kKept, kMissing);
  Add(record, kPlain, PredictionRecord::kEnough - 2, kFound);
  EXPECT_TRUE(record.Look());
  EXPECT_LT(record.Credit(kPlain), 1);
  record.Add(kPlain, kFound);
  EXPECT_FALSE(record.Look());
  // Outcomes from before the recovery are still kept and must not count again.
  for (size_t i = 0; i < PredictionRecord::kKept; ++i) {
    record.Add(kPlain, kFound);
    ASSERT_FALSE(record.Look()) << i;
    ASSERT_EQ(record.Credit(kPlain), 1);
  }
}

TEST(PredictionRecord, DoubtsAgainWhenItDriftsAgain) {
  PredictionRecord record;
  Add(record, kPlain, PredictionRecord::kKept, kMissing);
  Add(record, kPlain, PredictionRecord::kKept, kFound);
  Add(record, kPlain, PredictionRecord::kEnough, kMissing);
  EXPECT_TRUE(record.Look());
}

TEST(PredictionRecord, LeavesOutRequestsOfWhichNothingIsSaid) {
  PredictionRecord record;
  Add(record, kPlain, PredictionRecord::kEnough, kMissing);
  Add(record, kPlain, 1000, {});
  EXPECT_TRUE(record.Look());
}

TEST(PredictionRecord, NamesTheSpaceThatDriftsAlone) {
  PredictionRecord record;
  Add(record, kPlain, 20, kFound);
  Add(record, kAdapter, 20, kMissing);
  const auto drift = record.Look();
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->space, kAdapter);
  EXPECT_TRUE(drift->others_fine);
  EXPECT_FALSE(drift->more);
  EXPECT_EQ(drift->requests, 20u);
  EXPECT_EQ(drift->predicted, 2000u);
  EXPECT_EQ(drift->cached, 0u);
  EXPECT_EQ(record.Credit(kPlain), 1);
  EXPECT_EQ(record.Credit(kAdapter), 0);
  EXPECT_EQ(record.Credit(kSalted), 1);
}

TEST(PredictionRecord, DoesNotCallOthersFineThatAreNotOrAreNotThere) {
  PredictionRecord all;
  Add(all, kPlain, 20, kMissing);
  Add(all, kSalted, 20, kMissing);
  EXPECT_EQ(all.Look()->space, kPlain);
  EXPECT_FALSE(all.Look()->others_fine);
  PredictionRecord alone;
  Add(alone, kSalted, 20, kMissing);
  EXPECT_FALSE(alone.Look()->others_fine);
}

TEST(PredictionRecord, DoubtsASpaceOfWhichMoreIsFoundThanAnybodyCouldKnow) {
  PredictionRecord record;
  Add(record, kSalted, 20, kSurprise);
  EXPECT_FALSE(record.Look()) << "plain requests may be the same";
  Add(record, kPlain, 20, kFound);
  record.Add(kSalted, kSurprise);
  const auto drift = record.Look();
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->space, kSalted);
  EXPECT_TRUE(drift->more);
  EXPECT_EQ(record.Credit(kSalted), 1) << "what events say is there all the same";
  Add(record, kSalted, 20, kFound);
  EXPECT_FALSE(record.Look());
}

TEST(PredictionRecord, DoesNotMindWhereEverySpaceSurprises) {
  PredictionRecord record;
  for (int i = 0; i < 40; ++i) {
    record.Add(kPlain, kSurprise);
    record.Add(kSalted, kSurprise);
  }
  EXPECT_FALSE(record.Look());
}

TEST(PredictionRecord, ForgetsEverythingOnReset) {
  PredictionRecord record;
  Add(record, kAdapter, 20, kMissing);
  record.Reset();
  EXPECT_FALSE(record.Look());
  EXPECT_EQ(record.Credit(kAdapter), 1);
}

RC_GTEST_PROP(PredictionRecord, CreditIsAShareAndFullWithoutDrift, ()) {
  PredictionRecord record;
  for (int i = *rc::gen::inRange(0, 200); i > 0; --i) {
    const auto space = static_cast<PromptSpace>(*rc::gen::inRange<int>(0, kPromptSpaces));
    const auto predicted = *rc::gen::inRange(0u, 1000u);
    const auto cached = *rc::gen::inRange(0u, 1000u);
    const auto missing = *rc::gen::inRange(0u, predicted - std::min(predicted, cached) + 1);
    record.Add(space, {.predicted = predicted,
                       .cached = cached,
                       .missing = missing,
                       .unforeseen = cached - std::min(predicted, cached)});
    for (const PromptSpace each : {kPlain, kAdapter, kSalted}) {
      const double credit = record.Credit(each);
      RC_ASSERT(credit >= 0 && credit <= 1);
      if (!record.Look()) RC_ASSERT(credit == 1);
    }
  }
}

}  // namespace
}  // namespace fathom
