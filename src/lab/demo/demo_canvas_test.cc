#include "lab/demo/demo_canvas.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Canvas, CutsALineAtItsWidthAndCountsCharactersNotBytes) {
  Canvas canvas(6, false);
  canvas.Put("näme").Put("-long").EndLine();
  EXPECT_EQ(canvas.Text(), "näme-…\n");
}

TEST(Canvas, ColoursOnlyWhenAsked) {
  Canvas plain(10, false);
  plain.Put("x", kBold).EndLine();
  EXPECT_EQ(plain.Text(), "x\n");
  Canvas coloured(10, true);
  coloured.Put("x", kBold).Put("", kRed).EndLine();
  EXPECT_EQ(coloured.Text(), "\x1b[1mx\x1b[0m\n");
}

TEST(Canvas, PutsPicturesOfUnequalHeightBesideEachOther) {
  for (const bool color : {false, true}) {
    Canvas left(4, color);
    left.Put("a", color ? kRed : "").EndLine();
    Canvas right(4, color);
    right.Put("b").EndLine();
    right.Put("c").EndLine();
    Canvas both(11, color);
    both.Beside(left, " │ ", right);
    EXPECT_EQ(both.lines(), 2u);
    const std::string a = color ? "\x1b[31ma\x1b[0m" : "a";
    EXPECT_EQ(both.Text(), a + "    │ b\n     │ c\n");
  }
}

TEST(Canvas, PutsPicturesBelowEachOther) {
  Canvas upper(4, false);
  upper.Put("a").EndLine();
  Canvas lower(4, false);
  lower.Put("b  ").EndLine();
  upper.Below(lower);
  EXPECT_EQ(upper.Text(), "a\nb\n");
}

TEST(Fit, GivesExactlyTheColumnsAskedFor) {
  EXPECT_EQ(Fit("ab", 4), "ab  ");
  EXPECT_EQ(FitRight("ab", 4), "  ab");
  EXPECT_EQ(Fit("äbcd", 3), "äb…");
  EXPECT_EQ(FitRight("abcd", 3), "ab…");
  EXPECT_EQ(Fit("abc", 0), "");
}

TEST(Printable, LeavesNothingThatMovesTheCursor) {
  EXPECT_EQ(Printable("evil\x1b[2J\n\x7fnäme"), "evil?[2J??näme");
}

TEST(TimeText, HasTheUnitThatFits) {
  EXPECT_EQ(TimeText(Duration::zero()), "-");
  EXPECT_EQ(TimeText(microseconds(250)), "250 us");
  EXPECT_EQ(TimeText(microseconds(9040)), "9.0 ms");
  EXPECT_EQ(TimeText(milliseconds(90)), "90 ms");
  EXPECT_EQ(TimeText(milliseconds(2500)), "2.5 s");
  EXPECT_EQ(ElapsedText(seconds(75)), "1:15");
}

TEST(AmountText, StaysShort) {
  EXPECT_EQ(AmountText(9999), "9999");
  EXPECT_EQ(AmountText(123456), "123.5k");
  EXPECT_EQ(AmountText(12345678), "12.3M");
  EXPECT_EQ(ShareText(0.618), "62%");
}

TEST(Bar, IsFilledByItsShare) {
  EXPECT_EQ(Bar(0.5, 4), "██░░");
  EXPECT_EQ(Bar(0.5, 5), "██▌░░");
  EXPECT_EQ(Bar(7, 2), "██");
  EXPECT_EQ(Bar(-1, 2), "░░");
  EXPECT_EQ(Bar(0.5, 0), "");
}

// In eighths of a column.
size_t LengthOf(const std::string& bar) {
  size_t eighths = 0;
  for (size_t i = 0; i < bar.size(); i += 3) {
    const std::string cell = bar.substr(i, 3);
    if (cell == "░") continue;
    eighths += 8 - static_cast<size_t>(cell.back() - "█"[2]);
  }
  return eighths;
}

TEST(Bar, AgreesWithTheNumberBesideIt) {
  for (size_t width = 1; width <= 90; ++width) {
    for (int mille = 0; mille <= 1000; ++mille) {
      const double share = mille / 1000.0;
      const size_t length = LengthOf(Bar(share, width));
      const int percent = std::stoi(ShareText(share));
      EXPECT_EQ(length == 0, percent == 0) << percent;
      EXPECT_EQ(length == width * 8, percent == 100) << percent;
      EXPECT_NEAR(static_cast<double>(length), percent * static_cast<double>(width) * 0.08, 1);
    }
  }
}

TEST(Sparkline, ShowsTheLastValuesOnTheScaleItIsGiven) {
  EXPECT_EQ(Sparkline({1000, 0, 7, 14}, 3, 14), "▁▅█");
  EXPECT_EQ(Sparkline({7}, 3, 14), "▅");
  EXPECT_EQ(Sparkline({20, -1}, 3, 10), "█▁");
  EXPECT_EQ(Sparkline({0, 0}, 8, 0), "▁▁");
  EXPECT_EQ(Sparkline({}, 8, 1), "");
}

TEST(Chart, IsASparklineOfSeveralLines) {
  EXPECT_EQ(Chart({0, 5, 10}, 3, 2, 10), (std::vector<std::string>{" ▁█", "▁██"}));
  EXPECT_EQ(Chart({10, 3}, 1, 2, 10), (std::vector<std::string>{" ", "▆"}));
}

}  // namespace
}  // namespace fathom
