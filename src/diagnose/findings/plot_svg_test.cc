#include "diagnose/findings/plot_svg.h"

#include <gmock/gmock.h>

#include <limits>

#include "testing/markup_problem.h"
#include "testing/sample_report.h"

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t Count(std::string_view text, std::string_view piece) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(piece, at)) != std::string_view::npos; ++at) ++count;
  return count;
}

Plot Lines(std::vector<double> x, std::vector<double> y) {
  return {
      .kind = Plot::Kind::kLines,
      .title = "title",
      .x_label = "",
      .y_label = "",
      .categories = {},
      .series = {{.name = "series", .x = std::move(x), .y = std::move(y), .tone = Tone::kPlain}},
      .caption = ""};
}

std::string Drawn(const Plot& plot) {
  std::string svg = PlotSvg(plot);
  EXPECT_EQ(MarkupProblem(svg), "") << svg;
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  return svg;
}

TEST(PlotSvg, StacksBarsInTheOrderOfTheSeries) {
  Plot plot = SampleMemory();
  plot.categories = {"one"};
  const std::string svg = Drawn(plot);
  EXPECT_EQ(Count(svg, "<rect"), 5u);
  EXPECT_LT(svg.find("one, weights: 32.9 GiB"), svg.find("one, overhead: 4.2 GiB"));
  EXPECT_LT(svg.find("one, overhead: 4.2 GiB"), svg.find("one, KV in use: 18.3 GiB"));
}

TEST(PlotSvg, WritesTheNumberBehindABarThatIsNoStack) {
  const std::string svg = Drawn(SampleTtft());
  EXPECT_EQ(Count(svg, "<rect"), 2u);
  EXPECT_THAT(svg, HasSubstr(">846</text>"));
  EXPECT_THAT(svg, HasSubstr(">ms, median</text>"));
}

TEST(PlotSvg, DrawsOneLineForEachSeries) {
  const std::string svg = Drawn(SampleBlocks());
  EXPECT_EQ(Count(svg, "<polyline"), 2u);
  EXPECT_THAT(svg, HasSubstr("aria-label=\"Cached blocks\""));
  EXPECT_THAT(svg, HasSubstr(">6,000</text>"));
}

TEST(PlotSvg, BreaksALineWhereAValueIsMissing) {
  const std::string svg = Drawn(Lines({0, 1, 2, 3, 4, 5}, {1, 2, kNan, 4, 5, kInfinity}));
  EXPECT_EQ(Count(svg, "<polyline"), 2u);
  EXPECT_EQ(Count(svg, "<circle"), 0u);
}

TEST(PlotSvg, DrawsADotForOnePoint) {
  EXPECT_EQ(Count(Drawn(Lines({3}, {7})), "<circle"), 1u);
  EXPECT_EQ(Count(Drawn(Lines({0, 1, 2}, {7, kNan, 7})), "<circle"), 2u);
}

TEST(PlotSvg, SaysThatThereAreNoValues) {
  Plot bars = SampleTtft();
  bars.series[0].y = {kNan, kInfinity};
  Plot nameless = SampleTtft();
  nameless.categories.clear();
  Plot empty = SampleTtft();
  empty.series.clear();
  for (const Plot& plot : {bars, nameless, empty, Lines({}, {}), Lines({1}, {kNan})}) {
    EXPECT_THAT(Drawn(plot), HasSubstr(">no values</text>"));
  }
}

TEST(PlotSvg, DrawsWhatItCanOfStrangeNumbers) {
  Plot plot = SampleMemory();
  plot.series[0].y = {1e289, -5, kNan};
  plot.series[1].y = {1};
  plot.series[2].y = {};
  const std::string svg = Drawn(plot);
  EXPECT_LT(svg.size(), 8000u) << "no number is written out to its last digit";
  Drawn(Lines({0, 1}, {-1e289, 1e289}));
  Drawn(Lines({5, 5, 5}, {0, 0, 0}));
  Drawn(Lines({}, {1e-320, 2e-320}));
  Drawn(Lines({1, 2, 3}, {1}));
}

TEST(PlotSvg, BoundsWhatItDrawsAndLosesNoPeak) {
  Plot line = Lines({}, std::vector<double>(100'000, 1.0));
  line.series[0].y[77'777] = 1000;
  const std::string svg = Drawn(line);
  EXPECT_LT(svg.size(), 20'000u);
  EXPECT_THAT(svg, HasSubstr(",26.0 ")) << "the peak is at the upper edge";
  Plot bars = SampleTtft();
  bars.categories.assign(500, "gpu");
  bars.series[0].y.assign(500, 1);
  EXPECT_EQ(Count(Drawn(bars), "<rect"), kMaxBars);
  EXPECT_THAT(Drawn(bars), HasSubstr(">and 452 more</text>"));
}

TEST(PlotSvg, EscapesEveryText) {
  const Report report = ReportThatSays("</svg><script>\"'&\x1b");
  for (const Plot& plot : report.sections[0].plots) {
    EXPECT_THAT(Drawn(plot), AllOf(Not(HasSubstr("<script")), Not(HasSubstr("\x1b"))));
  }
}

TEST(SeriesClass, TellsSeriesApart) {
  const Plot plot = SampleMemory();
  EXPECT_EQ(SeriesClass(plot, 0), "faint");
  EXPECT_EQ(SeriesClass(plot, 1), "faint shade2");
  EXPECT_EQ(SeriesClass(plot, 2), "bad");
  EXPECT_EQ(SeriesClass(plot, 4), "s1");
}

TEST(PlotSvg, TellsBarsApartWhoseNamesDifferAtTheEnd) {
  Plot plot;
  plot.categories = {"http://engine.example.org:8000 0", "http://engine.example.org:8000 1"};
  plot.series = {{.name = "stored", .x = {}, .y = {1, 2}}};
  const std::string svg = PlotSvg(plot);
  EXPECT_NE(svg.find("8000 0</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("8000 1</text>"), std::string::npos) << svg;
}

TEST(PlotSvg, NumbersBarsWhoseNamesCannotBeToldApart) {
  Plot plot;
  plot.categories = {"a-very-long-beginning-1-and-a-very-long-end",
                     "a-very-long-beginning-2-and-a-very-long-end"};
  plot.series = {{.name = "stored", .x = {}, .y = {1, 2}}};
  const std::string svg = PlotSvg(plot);
  EXPECT_NE(svg.find("#1</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("#2</text>"), std::string::npos) << svg;
}

}  // namespace
}  // namespace fathom
