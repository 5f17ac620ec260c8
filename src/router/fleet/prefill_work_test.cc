#include "router/fleet/prefill_work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace fathom {
namespace {

struct Row {
  double fresh = 0;
  double cached = 0;
  double time = 0;  // milliseconds

  double unit() const { return time / PrefillWork(fresh, cached); }
};

// Rows of at least 256 new tokens, by model; below that the engine's other work dominates.
std::map<std::string, std::vector<Row>> Measured() {
  std::ifstream file("src/lab/mock/profiles/h200_prefill.csv");
  std::map<std::string, std::vector<Row>> rows;
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "model,new_tokens,cached_tokens,ms");
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string model;
    std::getline(cells, model, ',');
    Row row;
    char comma = 0;
    cells >> row.fresh >> comma >> row.cached >> comma >> row.time;
    EXPECT_TRUE(cells) << line;
    if (row.fresh >= 256) rows[model].push_back(row);
  }
  return rows;
}

// Geometric mean, so that rows of all sizes count alike.
double UnitOf(const std::vector<Row>& rows) {
  double sum = 0;
  for (const Row& row : rows) sum += std::log(row.unit());
  return std::exp(sum / static_cast<double>(rows.size()));
}

TEST(PrefillWork, IsWithinAQuarterOfEveryMeasuredTime) {
  const auto measured = Measured();
  EXPECT_EQ(measured.size(), 2u);
  for (const auto& [model, rows] : measured) {
    EXPECT_GE(rows.size(), 12u) << model;
    const double unit = UnitOf(rows);
    for (const Row& row : rows) {
      EXPECT_NEAR(row.unit() / unit, 1, 0.25)
          << model << ": " << row.fresh << " new tokens behind " << row.cached;
    }
  }
}

TEST(PrefillWork, AssumesTheUnitOfTheSmallerModelAtFirst) {
  const double milliseconds = Seconds(kUsualUnit) * 1e3;
  EXPECT_NEAR(UnitOf(Measured().at("llama-3.1-8b")) / milliseconds, 1, 0.1);
}

TEST(PrefillWork, IsLessTheMoreIsCached) {
  for (const double prompt : {64.0, 1000.0, 8192.0, 100'000.0}) {
    double before = PrefillWork(prompt, 0);
    for (double cached = 1; cached < prompt; cached += prompt / 64) {
      const double work = PrefillWork(prompt - cached, cached);
      EXPECT_LT(work, before) << cached << " of " << prompt;
      before = work;
    }
  }
}

TEST(PrefillWork, AddsUpWhenAPromptIsCutInTwo) {
  const double whole = PrefillWork(8000, 0) - kPrefillBase;
  const double parts = PrefillWork(3000, 0) + PrefillWork(5000, 3000) - 2 * kPrefillBase;
  EXPECT_NEAR(parts / whole, 1, 1e-9);
}

}  // namespace
}  // namespace fathom
