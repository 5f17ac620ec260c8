#include "metrics/catalogue.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "metrics/exposition.h"
#include "metrics/metrics_reference.h"

namespace fathom {
namespace {

using testing::HasSubstr;

const std::string kDocs = "docs/";

template <class F>
void ForEachFamily(F&& visit) {
  for (const MetricArea& area : kMetricAreas) {
    for (const MetricFamily& family : area.families) visit(family);
  }
}

TEST(Catalogue, HasNoNameTwice) {
  std::set<std::string_view> names;
  ForEachFamily([&](const MetricFamily& family) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    if (family.former.name.empty()) return;
    CheckMetricName(family.former.name);
    EXPECT_TRUE(names.insert(family.former.name).second) << family.former.name;
  });
  EXPECT_GT(names.size(), 80u);
}

TEST(Catalogue, NamesFamiliesAsPrometheusWantsIt) {
  ForEachFamily([&](const MetricFamily& family) {
    CheckMetricName(family.name);
    EXPECT_TRUE(family.name.starts_with("fathom_") || family.name.starts_with("kv_router_"));
    EXPECT_EQ(family.name.ends_with("_total"), family.type == MetricType::kCounter) << family.name;
    Labels labels;
    for (const MetricLabel& label : family.labels()) labels.emplace_back(label.name, "");
    CheckLabelNames(labels);
  });
}

TEST(Catalogue, SaysWhatEachFamilyMeansAndWhatToDo) {
  ForEachFamily([&](const MetricFamily& family) {
    EXPECT_FALSE(family.help.empty() || family.help.ends_with('.')) << family.name;
    EXPECT_TRUE(family.action.ends_with('.')) << family.name;
    EXPECT_TRUE(family.page.empty() || std::filesystem::exists(kDocs + std::string(family.page)))
        << family.name << ": " << family.page;
  });
}

TEST(Catalogue, IsLookedUpByName) {
  constexpr const MetricFamily& kFound = Metric("kv_router_rank_doubt");
  EXPECT_EQ(kFound.name, "kv_router_rank_doubt");
  EXPECT_EQ(&kFound, &Metric("kv_router_rank_doubt"));
}

TEST(MetricsPage, HasAPartForEveryFamily) {
  const std::string page = MetricsReference();
  ForEachFamily([&](const MetricFamily& family) {
    const std::string opening(family.help.substr(0, 40));  // no line breaks there
    EXPECT_THAT(page, HasSubstr(fmt::format("\n### {}\n\n{}", family.name, opening)));
  });
  EXPECT_THAT(page, HasSubstr("* Type: histogram\n* Labels: `from` (`timestamp`, `first_byte`)\n"));
}

TEST(MetricsPage, IsWhatTheDocsSay) {
  std::ifstream file(kDocs + "metrics.md");
  ASSERT_TRUE(file.good()) << "docs/metrics.md is missing; run ./dev docs";
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(written == MetricsReference())
      << "docs/metrics.md differs from the catalogue of metrics; run ./dev docs";
}

}  // namespace
}  // namespace fathom
