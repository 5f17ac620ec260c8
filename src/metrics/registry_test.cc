#include "metrics/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "testing/exposition_reader.h"

namespace fathom {
namespace {

constexpr double kRegistryBounds[] = {0.01, 0.1, 1};
constexpr MetricFamily Of(std::string_view name, MetricType type, std::string_view help,
                          std::string_view label = {}, std::string_view another = {}) {
  return {.name = name,
          .type = type,
          .help = help,
          .action = "",
          .label_slots = {{{label}, {another}}}};
}

constexpr MetricFamily kRequests = Of("requests_total", MetricType::kCounter, "Requests", "model");
constexpr MetricFamily kInFlight = Of("in_flight", MetricType::kGauge, "Now");
constexpr MetricFamily kTime = Of("t_seconds", MetricType::kHistogram, "Time");
constexpr MetricFamily kPairs = Of("a_total", MetricType::kCounter, "A", "x", "y");
constexpr MetricFamily kPlain = Of("a_total", MetricType::kCounter, "A");
constexpr MetricFamily kByModel = Of("a_total", MetricType::kCounter, "A", "model");
constexpr MetricFamily kWorkers = Of("g", MetricType::kGauge, "G", "worker");
constexpr MetricFamily kAsked = Of("asked", MetricType::kGauge, "");
constexpr MetricFamily kLate = Of("late_total", MetricType::kCounter, "Late");
constexpr MetricFamily kLabelled = Of("h", MetricType::kHistogram, "H", "l");
constexpr std::string_view kOverflow = "fathom_metrics_label_overflow_total";

TEST(Registry, RendersWhatItsMetricsSay) {
  Registry registry;
  registry.AddCounter(kRequests, {{"model", "m"}}).Add(3);
  registry.AddGauge(kInFlight).Set(-4);
  registry.AddHistogram(kTime, kRegistryBounds).Observe(std::chrono::milliseconds(50));
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
  Counter& one = registry.AddCounter(kPairs, {{"x", "1"}, {"y", "2"}});
  Counter& same = registry.AddCounter(kPairs, {{"y", "2"}, {"x", "1"}});
  Counter& other = registry.AddCounter(kPairs, {{"x", "2"}, {"y", "1"}});
  EXPECT_EQ(&one, &same);
  EXPECT_NE(&one, &other);
}

TEST(Registry, JoinsLabelSetsIntoOneFamilyWithCollectedOnes) {
  Registry registry;
  registry.AddGauge(kWorkers, {{"worker", "1"}}).Set(1);
  registry.AddCollector([](Exposition& out) { out.Add(kWorkers, {{"worker", "2"}}, 2); });
  registry.AddCollector([](Exposition& out) { out.Add(kPlain, {}, 9); });
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
  registry.AddCollector([&](Exposition& out) { out.Add(kAsked, {}, ++asked); });
  registry.Render();
  EXPECT_EQ(ExpositionReader(registry.Render()).Value("asked"), 2);
}

TEST(Registry, LetsACollectorAddAMetric) {
  Registry registry;
  registry.AddCollector([&](Exposition&) { registry.AddCounter(kLate).Add(); });
  registry.Render();
  EXPECT_EQ(ExpositionReader(registry.Render()).Value("late_total"), 1);
}

TEST(Registry, SharesOneOtherWhenAFamilyIsFull) {
  Registry registry;
  const auto add = [&](size_t i) -> Counter& {
    return registry.AddCounter(kByModel, {{"model", std::to_string(i)}});
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

TEST(Registry, HasRoomForEveryWorkerOfALargeFleet) {
  Registry registry;
  for (size_t i = 0; i < 4096; ++i) {
    registry.AddGauge(kWorkers, {{"worker", std::to_string(i)}}).Set(1);
  }
  const std::string text = registry.Render();
  EXPECT_EQ(ExpositionReader(text).Value(kOverflow), 0);
}

TEST(Registry, RendersWellFormedTextWhileThreadsRaiseAndAdd) {
  Registry registry;
  Histogram& histogram = registry.AddHistogram(kTime, kRegistryBounds);
  std::atomic<bool> stop{false};
  std::jthread observer([&] {
    for (int64_t ns = 0; !stop.load(); ns = (ns + 7'654'321) % 2'000'000'000) {
      histogram.Observe(std::chrono::nanoseconds(ns));
    }
  });
  std::jthread adder([&] {
    for (int i = 0; !stop.load(); i = (i + 1) % 50) {
      registry.AddCounter(kByModel, {{"model", std::to_string(i)}}).Add();
    }
  });
  std::string problem;
  double last = 0;
  bool all_added = false;
  for (int i = 0; (i < 200 || !all_added) && problem.empty(); ++i) {
    const std::string text = registry.Render();
    const ExpositionReader reader(text);
    problem = reader.problem();
    const double count = reader.Value("t_seconds_count").value_or(-1);
    if (count < last) problem = "the count fell";
    last = count;
    all_added = reader.Value("a_total{model=\"49\"}").has_value();
  }
  stop.store(true);
  EXPECT_EQ(problem, "");
}

TEST(RegistryDeathTest, RefusesAFamilyThatDisagreesWithItself) {
  constexpr double kOtherBounds[] = {0.5};
  Registry registry;
  registry.AddCounter(kPlain);
  registry.AddHistogram(kLabelled, kRegistryBounds, {{"l", "1"}});
  EXPECT_DEATH(registry.AddGauge(kPlain), "broken invariant");
  EXPECT_DEATH(registry.AddHistogram(kPlain, kRegistryBounds), "broken invariant");
  EXPECT_DEATH(registry.AddCounter(kPairs, {{"x", "1"}, {"y", "1"}}), "broken invariant");
  EXPECT_DEATH(registry.AddHistogram(kLabelled, kOtherBounds, {{"l", "2"}}), "broken invariant");
}

TEST(RegistryDeathTest, RefusesLabelsThatTheFamilyDoesNotHave) {
  Registry registry;
  EXPECT_DEATH(registry.AddCounter(kByModel), "broken invariant");
  EXPECT_DEATH(registry.AddCounter(kByModel, {{"worker", "1"}}), "broken invariant");
  EXPECT_DEATH(registry.AddGauge(kInFlight, {{"worker", "1"}}), "broken invariant");
}

}  // namespace
}  // namespace fathom
