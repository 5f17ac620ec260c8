#include "router/fleet/catch_up.h"

#include <gtest/gtest.h>

#include <optional>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kBorn{seconds(1000)};
constexpr Duration kPatience = seconds(1);

TEST(CatchUp, IsAwaitedFromTheBeginningUntilThereIsNoSource) {
  CatchUp catch_up(nullptr, kBorn);
  EXPECT_TRUE(catch_up.Awaited(kBorn, kPatience));
  catch_up.Searched();
  EXPECT_FALSE(catch_up.Awaited(kBorn, kPatience));
}

TEST(CatchUp, IsAwaitedUntilTheLastReplayHasEnded) {
  CatchUp catch_up(nullptr, kBorn);
  std::optional<CatchUp::Share> one(std::in_place, catch_up, kBorn);
  std::optional<CatchUp::Share> two(std::in_place, catch_up, kBorn);
  catch_up.Searched();
  catch_up.Searched();
  one.reset();
  EXPECT_TRUE(catch_up.Awaited(kBorn, kPatience));
  two.reset();
  EXPECT_FALSE(catch_up.Awaited(kBorn, kPatience));
}

TEST(CatchUp, IsAwaitedOnlyWhileItMakesProgress) {
  CatchUp catch_up(nullptr, kBorn);
  EXPECT_TRUE(catch_up.Awaited(kBorn + milliseconds(999), kPatience));
  EXPECT_FALSE(catch_up.Awaited(kBorn + kPatience, kPatience));
  CatchUp::Share replay(catch_up, kBorn + seconds(5));
  EXPECT_TRUE(catch_up.Awaited(kBorn + seconds(5), kPatience));
  EXPECT_FALSE(catch_up.Awaited(kBorn + seconds(6), kPatience));
  replay.Progress(kBorn + seconds(7));
  EXPECT_TRUE(catch_up.Awaited(kBorn + seconds(7), kPatience));
}

TEST(CatchUp, ShowsInTheFleetThatNobodyNeedsToLook) {
  const auto pulse = std::make_shared<FleetPulse>();
  const auto awaited = [&](TimePoint now) {
    return CatchUp::AwaitedInFleet(*pulse, now, kPatience);
  };
  EXPECT_FALSE(awaited(kBorn));
  CatchUp catch_up(pulse, kBorn);
  EXPECT_TRUE(awaited(kBorn));
  EXPECT_FALSE(awaited(kBorn + kPatience));
  CatchUp::Share replay(catch_up, kBorn + seconds(5));
  EXPECT_TRUE(awaited(kBorn + seconds(5)));
}

}  // namespace
}  // namespace fathom
