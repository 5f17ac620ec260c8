#include "metrics/exposition.h"

#include <gtest/gtest.h>

#include <limits>

#include "testing/exposition_reader.h"

namespace fathom {
namespace {

TEST(Exposition, WritesNothingWhenThereIsNothing) { EXPECT_EQ(Exposition().Text(), ""); }

TEST(Exposition, WritesFamiliesSortedWithOneHelpAndTypeEach) {
  Exposition out;
  out.AddGauge("b_now", "How many now", {}, 2);
  out.AddCounter("a_total", "How often", {{"model", "m"}, {"code", "200"}}, 7);
  out.AddGauge("b_now", "Another help", {{"worker", "5"}}, -1.5);
  EXPECT_EQ(out.Text(),
            "# HELP a_total How often\n"
            "# TYPE a_total counter\n"
            "a_total{model=\"m\",code=\"200\"} 7\n"
            "# HELP b_now How many now\n"
            "# TYPE b_now gauge\n"
            "b_now 2\n"
            "b_now{worker=\"5\"} -1.5\n");
}

TEST(Exposition, WritesHistogramsAsCumulativeBucketsSumAndCount) {
  Exposition out;
  const HistogramSnapshot snapshot{
      .upper_bounds = {0.005, 1}, .cumulative = {1, 3, 4}, .sum = 12.25};
  out.AddHistogram("t_seconds", "Time", {{"route", "chat"}}, snapshot);
  EXPECT_EQ(out.Text(),
            "# HELP t_seconds Time\n"
            "# TYPE t_seconds histogram\n"
            "t_seconds_bucket{route=\"chat\",le=\"0.005\"} 1\n"
            "t_seconds_bucket{route=\"chat\",le=\"1\"} 3\n"
            "t_seconds_bucket{route=\"chat\",le=\"+Inf\"} 4\n"
            "t_seconds_sum{route=\"chat\"} 12.25\n"
            "t_seconds_count{route=\"chat\"} 4\n");
}

TEST(Exposition, EscapesHelpAndLabelValues) {
  Exposition out;
  out.AddCounter("a_total", "a \"quoted\" \\ word\nnext", {{"l", "a\"b\\c\nd"}}, 1);
  EXPECT_EQ(out.Text(),
            "# HELP a_total a \"quoted\" \\\\ word\\nnext\n"
            "# TYPE a_total counter\n"
            "a_total{l=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST(Exposition, KeepsUtf8AndReplacesWhatIsNot) {
  const std::string fine = "\u00e9\u20ac\U0001f600";
  for (const std::string bad : {"\xff", "\x80", "\xc3", "\xc0\xaf", "\xe2\x82", "\xed\xa0\x80",
                                "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80"}) {
    Exposition out;
    out.AddGauge("g", "", {{"l", fine + bad + "z"}}, 1);
    std::string replaced;
    for (size_t i = 0; i < bad.size(); ++i) replaced += "\ufffd";
    EXPECT_EQ(out.Text(), "# HELP g \n# TYPE g gauge\ng{l=\"" + fine + replaced + "z\"} 1\n");
  }
}

TEST(Exposition, WritesNumbersThatReadBackTheSame) {
  Exposition out;
  out.AddGauge("g", "", {{"n", "big"}}, 123456789012);
  out.AddGauge("g", "", {{"n", "huge"}}, 1e300);
  out.AddGauge("g", "", {{"n", "third"}}, 1.0 / 3);
  out.AddGauge("g", "", {{"n", "inf"}}, std::numeric_limits<double>::infinity());
  out.AddGauge("g", "", {{"n", "minus"}}, -std::numeric_limits<double>::infinity());
  out.AddGauge("g", "", {{"n", "nan"}}, std::numeric_limits<double>::quiet_NaN());
  const std::string text = out.Text();
  const ExpositionReader reader(text);
  EXPECT_EQ(reader.problem(), "");
  EXPECT_EQ(reader.Value("g{n=\"huge\"}"), 1e300);
  EXPECT_EQ(reader.Value("g{n=\"third\"}"), 1.0 / 3);
  EXPECT_TRUE(text.contains("g{n=\"big\"} 123456789012\n")) << text;
  EXPECT_TRUE(text.contains("g{n=\"inf\"} +Inf\n")) << text;
  EXPECT_TRUE(text.contains("g{n=\"minus\"} -Inf\n")) << text;
  EXPECT_TRUE(text.contains("g{n=\"nan\"} NaN\n")) << text;
}

TEST(ExpositionDeathTest, RefusesAFamilyWithTwoTypes) {
  Exposition out;
  out.AddCounter("a", "", {}, 1);
  EXPECT_DEATH(out.AddGauge("a", "", {}, 1), "broken invariant");
}

TEST(ExpositionDeathTest, RefusesNamesThatPrometheusWouldRefuse) {
  Exposition out;
  EXPECT_DEATH(out.AddGauge("", "", {}, 1), "broken invariant");
  EXPECT_DEATH(out.AddGauge("9lives", "", {}, 1), "broken invariant");
  EXPECT_DEATH(out.AddGauge("a-b", "", {}, 1), "broken invariant");
  EXPECT_DEATH(out.AddGauge("a", "", {{"l-m", "1"}}, 1), "broken invariant");
  EXPECT_DEATH(out.AddGauge("a", "", {{"__l", "1"}}, 1), "broken invariant");
  EXPECT_DEATH(out.AddGauge("a", "", {{"le", "1"}}, 1), "broken invariant");
  EXPECT_DEATH(out.AddGauge("a", "", {{"l", "1"}, {"l", "2"}}, 1), "broken invariant");
}

constexpr MetricFamily kNow{.name = "b_now",
                            .type = MetricType::kGauge,
                            .help = "How many now",
                            .action = "",
                            .label_slots = {{{"worker"}, {"kind", "x y"}}}};

TEST(Exposition, TakesHelpAndTypeFromAFamily) {
  Exposition out;
  out.Add(kNow, {{"kind", "x"}, {"worker", "5"}}, 2);
  EXPECT_EQ(out.Text(),
            "# HELP b_now How many now\n"
            "# TYPE b_now gauge\n"
            "b_now{kind=\"x\",worker=\"5\"} 2\n");
}

TEST(Exposition, WritesARenamedFamilyUnderBothNames) {
  constexpr MetricFamily kGauge{.name = "new_now",
                                .type = MetricType::kGauge,
                                .help = "Now",
                                .action = "",
                                .label_slots = {{{"worker"}}},
                                .former = {"old_now", "0.1.0"}};
  constexpr MetricFamily kTimes{.name = "new_seconds",
                                .type = MetricType::kHistogram,
                                .help = "Time",
                                .action = "",
                                .former = {"old_seconds", "0.1.0"}};
  Exposition out;
  out.Add(kGauge, {{"worker", "5"}}, 2);
  out.Add(kTimes, {}, HistogramSnapshot{.upper_bounds = {}, .cumulative = {4}, .sum = 1});
  EXPECT_EQ(out.Text(),
            "# HELP new_now Now\n"
            "# TYPE new_now gauge\n"
            "new_now{worker=\"5\"} 2\n"
            "# HELP new_seconds Time\n"
            "# TYPE new_seconds histogram\n"
            "new_seconds_bucket{le=\"+Inf\"} 4\n"
            "new_seconds_sum 1\n"
            "new_seconds_count 4\n"
            "# HELP old_now Former name of new_now; Fathom 0.2.0 removes it\n"
            "# TYPE old_now gauge\n"
            "old_now{worker=\"5\"} 2\n"
            "# HELP old_seconds Former name of new_seconds; Fathom 0.2.0 removes it\n"
            "# TYPE old_seconds histogram\n"
            "old_seconds_bucket{le=\"+Inf\"} 4\n"
            "old_seconds_sum 1\n"
            "old_seconds_count 4\n");
}

TEST(ExpositionDeathTest, RefusesOtherLabelsThanTheFamilyHas) {
  Exposition out;
  EXPECT_DEATH(out.Add(kNow, {{"worker", "5"}}, 2), "broken invariant");
  EXPECT_DEATH(out.Add(kNow, {{"worker", "5"}, {"sort", "x"}}, 2), "broken invariant");
  EXPECT_DEATH(out.Add(kNow, {{"worker", "5"}, {"kind", "x"}}, HistogramSnapshot{}),
               "broken invariant");
}

// The other tests rely on the reader, so it must refuse invalid text.
TEST(ExpositionReader, RefusesWhatIsNotTheFormat) {
  const std::string head = "# HELP a x\n# TYPE a gauge\n";
  EXPECT_EQ(ExpositionReader(head + "a 1\n").problem(), "");
  const std::string histogram = "# HELP a x\n# TYPE a histogram\n";
  EXPECT_EQ(ExpositionReader(histogram + "a_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n").problem(),
            "");
  for (const std::string& bad :
       {head + "a 1", head + "a\n", head + "a x\n", head + "b 1\n", head + "a 1\na 1\n",
        head + "a{l=\"\\t\"} 1\n", head + "a{l=\"x} 1\n", head + "a{l=\"x\",} 1\n",
        head + "a 1\n" + head, std::string("a 1\n"), std::string("# HELP a \\q\n# TYPE a gauge\n"),
        std::string("# HELP a x\n# TYPE b gauge\n"), std::string("# HELP a x\n# TYPE a guess\n"),
        histogram + "a_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
        histogram + "a_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
        histogram + "a_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 2\n"}) {
    EXPECT_NE(ExpositionReader(bad).problem(), "") << bad;
  }
}

}  // namespace
}  // namespace fathom
