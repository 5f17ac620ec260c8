#include "router/routing/waste.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace fathom {
namespace {

using enum WasteCause;

TEST(Waste, IsNothingWhereNobodyKnewMore) {
  KnownPrefixes known{.used = 64};
  known.Note(kMispredicted, 64);
  known.Note(kLoad, 48);
  EXPECT_EQ(WasteOf(known, std::nullopt).total(), 0u);
  EXPECT_EQ(WasteOf(known, 64).total(), 0u);
  EXPECT_EQ(WasteOf(known, 128).total(), 0u) << "more was found than anybody knew";
  EXPECT_EQ(WasteOf({}, std::nullopt).total(), 0u);
}

TEST(Waste, IsSharedOutFromTheFirstCauseToTheLast) {
  KnownPrefixes known{.used = 100};
  known.Note(kMispredicted, 100);
  known.Note(kLoad, 150);
  known.Note(kDoubted, 120);  // shallower than kLoad, so it gets nothing
  known.Note(kEvicted, 400);
  const Waste waste = WasteOf(known, 30);
  EXPECT_EQ(waste[kMispredicted], 70u);
  EXPECT_EQ(waste[kLoad], 50u);
  EXPECT_EQ(waste[kDoubted], 0u);
  EXPECT_EQ(waste[kEvicted], 250u);
  EXPECT_EQ(waste.total(), 370u);
}

TEST(Waste, BlamesNoPredictionThatNobodyCanCheck) {
  KnownPrefixes known{.used = 100};
  known.Note(kMispredicted, 100);
  EXPECT_EQ(WasteOf(known, std::nullopt).total(), 0u);
  EXPECT_EQ(WasteOf(known, 0)[kMispredicted], 100u);
}

TEST(Waste, CountsTheDeepestOfOneCause) {
  KnownPrefixes known;
  known.Note(kFull, 32);
  known.Note(kFull, 96);
  known.Note(kFull, 64);
  EXPECT_EQ(WasteOf(known, std::nullopt)[kFull], 96u);
}

TEST(Waste, HasANameForEachCause) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kWasteCauses; ++i) names.insert(Name(static_cast<WasteCause>(i)));
  EXPECT_EQ(names.size(), kWasteCauses);
}

RC_GTEST_PROP(Waste, AddsUpToWhatWasKnownBeyondWhatWasUsed, ()) {
  const auto any = rc::gen::inRange(0u, 1'000'000u);
  KnownPrefixes known{.used = *any};
  for (size_t i = 0; i < kWasteCauses; ++i) {
    if (*rc::gen::arbitrary<bool>()) known.Note(static_cast<WasteCause>(i), *any);
  }
  const auto cached = *rc::gen::maybe(any);
  const uint32_t used = cached ? *cached : known.used;
  const uint32_t deepest = std::ranges::max(known.by_cause);
  const Waste waste = WasteOf(known, cached ? std::optional(*cached) : std::nullopt);
  RC_ASSERT(waste.total() == deepest - std::min(deepest, used));
  for (size_t i = 0; i < kWasteCauses; ++i) {
    RC_ASSERT(waste.tokens[i] <= known.by_cause[i] - std::min(known.by_cause[i], used));
  }
}

}  // namespace
}  // namespace fathom
