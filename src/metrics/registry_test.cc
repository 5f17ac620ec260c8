#include "metrics/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "metrics/exposition_reader.h"

namespace fathom {
namespace {

constexpr double kBounds[] = {0.01, 0.1, 1};
constexpr std::string_view kOverflow = "fathom_metrics_label_overflow_total";

TEST(Registry, RendersWhatItsMetricsSay) {
  Registry registry;
  registry.AddCounter("requests_total", "Requests", {{"model", "m"}}).Add(3);
  registry.AddGauge("in_flight", "Now").Set(-4);
  registry.AddHistogram("t_seconds", "Time", kBounds).Observe(std::chrono::milliseconds(50));
  const std::string text = registry.Render();
  const ExpositionReader reader(text);
  EXPECT_EQ(reader.problem(), "");
  EXPECT_EQ(reader.Value("requests_total{model=\"m\"}"), 3);
  EXPECT_EQ(reader.Value("in_flight"), -4);
  EXPECT_EQ(reader.Value("t_seconds_bucket{le=\"0.01\"}"), 0);
  EXPECT_EQ(reader.Value("t_seconds_bucket{le=\"0.1\"}"), 1);
  EXPECT_EQ(reader.Value("t_seconds_bucket{le=\"+Inf\"}"), 1);
  EXPECT_EQ(reader.Value("t_seconds_sum"), 0.05);
  EXPECT_EQ(reader.Value("t_seconds_count"), 1);
  EXPECT_EQ(reader.Value(kOverflow), 0);
}

TEST(Registry, GivesTheSameMetricForTheSameLabelsInAnyOrder) {
  Registry registry;
  Counter& one = registry.AddCounter("a_total", "A", {{"x", "1"}, {"y", "2"}});
  Counter& same = registry.AddCounter("a_total", "A", {{"y", "2"}, {"x", "1"}});
  Counter& other = registry.AddCounter("a_total", "A", {{"x", "2"}, {"y", "1"}});
  EXPECT_EQ(&one, &same);
  EXPECT_NE(&one, &other);
}

TEST(Registry, JoinsLabelSetsIntoOneFamilyWithCollectedOnes) {
  Registry registry;
  registry.AddGauge("g", "G", {{"worker", "1"}}).Set(1);
  registry.AddCollector([](Exposition& out) { out.AddGauge("g", "G", {{"worker", "2"}}, 2); });
  registry.AddCollector([](Exposition& out) { out.AddCounter("a_total", "A", {}, 9); });
  const std::string text = registry.Render();
  const ExpositionReader reader(text);  // refuses a second HELP or TYPE
  EXPECT_EQ(reader.problem(), "");
  EXPECT_EQ(reader.Value("g{worker=\"1\"}"), 1);
  EXPECT_EQ(reader.Value("g{worker=\"2\"}"), 2);
  EXPECT_EQ(reader.Value("a_total"), 9);
}

TEST(Registry, AsksItsCollectorsEveryTime) {
  Registry registry;
  int asked = 0;
  registry.AddCollector([&](Exposition& out) { out.AddGauge("asked", "", {}, ++asked); });
  registry.Render();
  EXPECT_EQ(ExpositionReader(registry.Render()).Value("asked"), 2);
}

TEST(Registry, LetsACollectorAddAMetric) {
  Registry registry;
  registry.AddCollector([&](Exposition&) { registry.AddCounter("late_total", "Late").Add(); });
  registry.Render();
  EXPECT_EQ(ExpositionReader(registry.Render()).Value("late_total"), 1);
}

TEST(Registry, SharesOneOtherWhenAFamilyIsFull) {
  Registry registry;
  const auto add = [&](size_t i) -> Counter& {
    return registry.AddCounter("a_total", "A", {{"model", std::to_string(i)}});
  };
  Counter* first = &add(0);
  for (size_t i = 1; i < Registry::kMaxLabelSets - 1; ++i) add(i).Add();
  Counter& late = add(5000);
  EXPECT_EQ(&late, &add(5001));
  EXPECT_EQ(&add(0), first);
  late.Add(17);
  const std::string text = registry.Render();
  const ExpositionReader reader(text);
  EXPECT_EQ(reader.Value("a_total{model=\"other\"}"), 17);
  EXPECT_EQ(reader.Value("a_total{model=\"5000\"}"), std::nullopt);
  EXPECT_EQ(reader.Value("a_total{model=\"998\"}"), 1);
  EXPECT_EQ(reader.size(), Registry::kMaxLabelSets + 1);  // and the counter of the overflow
  EXPECT_EQ(reader.Value(kOverflow), 2);
}

TEST(Registry, RendersWellFormedTextWhileThreadsRaiseAndAdd) {
  Registry registry;
  Histogram& histogram = registry.AddHistogram("h", "H", kBounds);
  std::atomic<bool> stop{false};
  std::jthread observer([&] {
    for (int64_t ns = 0; !stop.load(); ns = (ns + 7'654'321) % 2'000'000'000) {
      histogram.Observe(std::chrono::nanoseconds(ns));
    }
  });
  std::jthread adder([&] {
    for (int i = 0; !stop.load(); i = (i + 1) % 50) {
      registry.AddCounter("a_total", "A", {{"i", std::to_string(i)}}).Add();
    }
  });
  std::string problem;
  double last = 0;
  bool all_added = false;
  for (int i = 0; (i < 200 || !all_added) && problem.empty(); ++i) {
    const std::string text = registry.Render();
    const ExpositionReader reader(text);
    problem = reader.problem();
    const double count = reader.Value("h_count").value_or(-1);
    if (count < last) problem = "h_count fell";
    last = count;
    all_added = reader.Value("a_total{i=\"49\"}").has_value();
  }
  stop.store(true);
  EXPECT_EQ(problem, "");
}

TEST(RegistryDeathTest, RefusesAFamilyThatDisagreesWithItself) {
  constexpr double kOtherBounds[] = {0.5};
  Registry registry;
  registry.AddCounter("a_total", "A");
  registry.AddHistogram("h", "H", kBounds, {{"l", "1"}});
  EXPECT_DEATH(registry.AddGauge("a_total", "A"), "broken invariant");
  EXPECT_DEATH(registry.AddCounter("a_total", "B"), "broken invariant");
  EXPECT_DEATH(registry.AddHistogram("h", "H", kOtherBounds, {{"l", "2"}}), "broken invariant");
}

}  // namespace
}  // namespace fathom
