#include "diagnose/findings/plot_axis.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using enum PlotAxis::Ends;

std::vector<std::string> Labels(double low, double high, PlotAxis::Ends ends = kAtTicks) {
  const PlotAxis axis(low, high, 5, ends);
  std::vector<std::string> labels;
  for (const double tick : axis.ticks()) labels.push_back(axis.Label(tick));
  return labels;
}

TEST(PlotAxis, HasTicksAtOneTwoAndFive) {
  EXPECT_THAT(Labels(0, 80), ElementsAre("0", "20", "40", "60", "80"));
  EXPECT_THAT(Labels(0, 0.9), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(Labels(0, 5504), ElementsAre("0", "2,000", "4,000", "6,000"));
  EXPECT_THAT(Labels(-3, 4), ElementsAre("-4", "-2", "0", "2", "4"));
}

TEST(PlotAxis, ScalesLargeNumbers) {
  EXPECT_THAT(Labels(0, 45000), ElementsAre("0", "10k", "20k", "30k", "40k", "50k"));
  EXPECT_THAT(Labels(0, 3e6), ElementsAre("0", "1M", "2M", "3M"));
}

TEST(PlotAxis, EndsWhereTheDataEndsIfAsked) {
  EXPECT_THAT(Labels(1, 9, kExact), ElementsAre("2", "4", "6", "8"));
  EXPECT_EQ(PlotAxis(1, 9, 5, kExact).At(9), 1);
}

TEST(PlotAxis, BeginsAtZeroUnlessThatIsFarAway) {
  EXPECT_EQ(PlotAxis(10, 80, 5, kAtTicks).ticks().front(), 0);
  EXPECT_EQ(PlotAxis(1000, 1010, 5, kAtTicks).ticks().front(), 1000);
}

TEST(PlotAxis, HasFewFiniteTicksForAnyRange) {
  const double values[] = {0, 1, -1, 1e-300, 5e-324, 1e-9, 1e9, 1e289, -1e289, 1e15, 1.0000001};
  for (const double a : values) {
    for (const double b : values) {
      for (const PlotAxis::Ends ends : {kAtTicks, kExact}) {
        const PlotAxis axis(std::min(a, b), std::max(a, b), 5, ends);
        EXPECT_LE(axis.ticks().size(), 9u) << a << " " << b;
        EXPECT_GE(axis.ticks().size(), 1u) << a << " " << b;
        EXPECT_TRUE(std::isfinite(axis.At(a)) && std::isfinite(axis.At(b))) << a << " " << b;
        for (const double tick : axis.ticks()) EXPECT_LE(axis.Label(tick).size(), 12u);
      }
    }
  }
}

TEST(IsPlottable, RefusesWhatHasNoPlace) {
  EXPECT_TRUE(IsPlottable(0));
  EXPECT_TRUE(IsPlottable(-1e18));
  EXPECT_FALSE(IsPlottable(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(IsPlottable(-std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(IsPlottable(1e308));
}

TEST(ShortNumber, HasThreeDigitsThatMatter) {
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(846), "846");
  EXPECT_EQ(ShortNumber(34.32), "34.3");
  EXPECT_EQ(ShortNumber(16.0), "16");
  EXPECT_EQ(ShortNumber(5504), "5,504");
  EXPECT_EQ(ShortNumber(0.0123), "0.0123");
  EXPECT_EQ(ShortNumber(-2.5), "-2.5");
  EXPECT_EQ(ShortNumber(1234567), "1.23M");
  EXPECT_EQ(ShortNumber(1e20), "1e+20");
}

}  // namespace
}  // namespace fathom
