#include "router/fleet/engine_speed.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/random.h"

namespace fathom {
namespace {

constexpr double kUsual = static_cast<double>(Duration(kUsualUnit).count());

// First tokens of an engine that is `factor` times as slow as the tables, after prompts of 200 to
// 4,000 tokens; each is off by at most a fifth.
void Observe(EngineSpeed& speed, double factor, int times, uint64_t seed = 1) {
  Random random(seed);
  for (int i = 0; i < times; ++i) {
    const double work = PrefillWork(200 + random.Unit() * 3800, 0);
    const double luck = 0.8 + 0.4 * random.Unit();
    speed.Observe(work, Duration(static_cast<int64_t>(work * kUsual * factor * luck)));
  }
}

TEST(EngineSpeed, AssumesTheSpeedOfTheTablesAtFirst) { EXPECT_EQ(EngineSpeed().unit(), kUsual); }

TEST(EngineSpeed, LearnsAnotherSpeedFromAHundredObservations) {
  for (const double factor : {0.25, 0.5, 2.0, 10.0}) {
    EngineSpeed speed;
    Observe(speed, factor, 100);
    EXPECT_GT(speed.unit(), kUsual * factor * 0.8) << factor;
    EXPECT_LT(speed.unit(), kUsual * factor * 1.25) << factor;
  }
}

TEST(EngineSpeed, ForgetsTheEnginesThatWereReplaced) {
  EngineSpeed speed;
  Observe(speed, 10, 500);
  Observe(speed, 1, 500);
  EXPECT_LT(speed.unit(), kUsual * 1.25);
}

TEST(EngineSpeed, IsHardlyMovedByOneObservation) {
  EngineSpeed speed;
  speed.Observe(PrefillWork(1000, 0), Duration(static_cast<int64_t>(1128 * kUsual * 3)));
  EXPECT_LT(speed.unit(), kUsual * 1.5);
}

TEST(EngineSpeed, IgnoresWhatMakesNoSense) {
  EngineSpeed speed;
  speed.Observe(0, std::chrono::seconds(1));
  speed.Observe(-5, std::chrono::seconds(1));
  speed.Observe(1000, Duration::zero());
  speed.Observe(1000, -std::chrono::seconds(1));
  EXPECT_EQ(speed.unit(), kUsual);
}

TEST(EngineSpeed, LearnsFromAllThreads) {
  EngineSpeed speed;
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] { Observe(speed, 4, 200, seed); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(speed.unit(), kUsual * 4 * 0.8);
  EXPECT_LT(speed.unit(), kUsual * 4 * 1.25);
}

}  // namespace
}  // namespace fathom
