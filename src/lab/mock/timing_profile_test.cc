#include "lab/mock/timing_profile.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

double Ms(Duration d) { return Seconds(d) * 1000; }

TEST(TimingTable, IsExactAtItsPointsAndStraightBetweenThem) {
  TimingTable table;
  table.Add(1, 0, 10);
  table.Add(3, 0, 30);
  table.Add(1, 100, 110);
  table.Add(3, 100, 130);
  EXPECT_DOUBLE_EQ(table.At(1, 0), 10);
  EXPECT_DOUBLE_EQ(table.At(2, 0), 20);
  EXPECT_DOUBLE_EQ(table.At(2, 50), 70);
  EXPECT_DOUBLE_EQ(table.At(5, 0), 50);  // the last slope goes on
  EXPECT_DOUBLE_EQ(table.At(1, 200), 210);
}

TEST(MeasuredProfile, ReproducesTheMeasurements) {
  const auto profile = *TimingProfile::Named("h200-qwen3-32b");
  EXPECT_NEAR(Ms(profile->StepTime({.new_tokens = 1024, .context_of_new = 1024 * 4096})), 152.9149,
              1e-3);
  EXPECT_NEAR(Ms(profile->StepTime({.decoding = 32, .context_of_decoding = 32 * 4096})), 28.7663,
              1e-3);
}

TEST(MeasuredProfile, DecodingBesideAPrefillCostsLessThanAStepOfItsOwn) {
  const auto profile = *TimingProfile::Named("h200-llama-3.1-8b");
  const Duration prefill = profile->StepTime({.new_tokens = 2048});
  const Duration decode = profile->StepTime({.decoding = 64, .context_of_decoding = 64 * 4096});
  const Duration both =
      profile->StepTime({.new_tokens = 2048, .decoding = 64, .context_of_decoding = 64 * 4096});
  EXPECT_GT(both, prefill);
  EXPECT_LT(both, prefill + decode);
}

TEST(PolynomialProfile, IsThePublishedFormula) {
  const auto profile = *TimingProfile::Named("polynomial");
  EXPECT_NEAR(Ms(profile->StepTime({.new_tokens = 1000})), 0.4209989 + 15.18344 + 16.50142, 1e-3);
  EXPECT_NEAR(
      Ms(profile->StepTime({.decoding = 4, .context_of_decoding = 500, .cache_tokens = 1000})),
      -25.74 * 0.25 + 54.01 * 0.5 + 5.74, 1e-3);
}

TEST(TimingProfile, RefusesAnUnknownName) { EXPECT_FALSE(TimingProfile::Named("h200-gpt-2")); }

TEST(MeasuredProfile, RefusesATableThatCannotBeRead) {
  EXPECT_FALSE(MeasuredProfile::Read("m", "model,x,y,ms\nm,1,2,fast\n", "h\nm,1,2,3\n"));
  EXPECT_FALSE(MeasuredProfile::Read("m", "model,x,y,ms\nother,1,2,3\n", "h\nm,1,2,3\n"));
}

}  // namespace
}  // namespace fathom
