#include "app/demo_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

SideMoment Side(std::string mode, Duration follow_up) {
  SideMoment side;
  side.router_mode = std::move(mode);
  side.url = "http://127.0.0.1:34773";
  side.turns = 123;
  side.turns_per_second = 6.15;
  side.first_turn_p50 = milliseconds(95);
  side.follow_up_p50 = follow_up;
  side.follow_up_p90 = milliseconds(120);
  side.reused = 0.34;
  side.known_blocks = 4086;
  for (const uint64_t served : {31, 30, 32, 30}) side.workers.push_back({.served = served});
  return side;
}

DemoMoment Two(Duration first, Duration second) {
  DemoMoment moment{.elapsed = seconds(20), .people = 12};
  moment.sides = {Side("kv", first), Side("round-robin", second)};
  return moment;
}

TEST(DemoVerdict, SaysHowManyTimesSoonerTheFirstSideAnswers) {
  EXPECT_EQ(RenderVerdict(Two(milliseconds(15), milliseconds(90))),
            "follow-up turns: kv 15 ms, round-robin 90 ms: 6.0 times sooner");
  EXPECT_EQ(RenderVerdict(Two(milliseconds(90), milliseconds(30))),
            "follow-up turns: kv 90 ms, round-robin 30 ms: 3.0 times later");
  EXPECT_THAT(RenderVerdict(Two(milliseconds(90), milliseconds(92))), EndsWith("about the same"));
}

TEST(DemoVerdict, WaitsUntilBothSidesHaveAnswered) {
  EXPECT_EQ(RenderVerdict(Two(Duration::zero(), milliseconds(90))),
            "follow-up turns: kv -, round-robin 90 ms: too early to tell");
  EXPECT_THAT(RenderVerdict(Two(milliseconds(90), Duration::zero())),
              EndsWith("too early to tell"));
  EXPECT_EQ(RenderVerdict(DemoMoment()), "");
}

TEST(DemoVerdict, ComparesWithFirstTurnsWhereThereIsOneSideOnly) {
  DemoMoment moment = Two(milliseconds(10), {});
  moment.sides.pop_back();
  EXPECT_EQ(RenderVerdict(moment),
            "kv: follow-up turns 10 ms, first turns 95 ms: 9.5 times sooner");
}

TEST(DemoSummary, HasBothSidesInEachRowAndTheirRatio) {
  const std::string summary = RenderSummary(Two(milliseconds(15), milliseconds(90)), false);
  EXPECT_THAT(summary,
              HasSubstr("fathom demo  0:20  4 workers, 12 people, the same conversations"));
  EXPECT_THAT(summary, ContainsRegex("kv +round-robin +ratio\n"));
  EXPECT_THAT(summary, ContainsRegex("http://127.0.0.1:34773 +http://127.0.0.1:34773\n"));
  EXPECT_THAT(summary, ContainsRegex("turns +123, 6.2/s +123, 6.2/s\n"));
  EXPECT_THAT(summary, ContainsRegex("follow-up p50 +15 ms +90 ms +6.0\n"));
  EXPECT_THAT(summary, ContainsRegex("prompt reused +34% +34%\n"));
  EXPECT_THAT(summary, ContainsRegex("turns per worker +31 30 32 30 +31 30 32 30\n"));
  EXPECT_THAT(summary, EndsWith("90 ms: 6.0 times sooner\n"));
  EXPECT_THAT(summary, Not(HasSubstr("\x1b")));
}

TEST(DemoSummary, HasOneColumnAndNoRatioForOneSide) {
  DemoMoment moment = Two(milliseconds(15), {});
  moment.sides.pop_back();
  const std::string summary = RenderSummary(moment, false);
  EXPECT_THAT(summary, ContainsRegex("follow-up p50 +15 ms\n"));
  EXPECT_THAT(summary, Not(HasSubstr("ratio")));
  EXPECT_THAT(summary, Not(HasSubstr("both sides")));
}

TEST(DemoSummary, FitsEightyColumnsHoweverManyWorkersThereAre) {
  DemoMoment moment = Two(milliseconds(15), milliseconds(90));
  for (SideMoment& side : moment.sides) side.workers.resize(64);
  std::istringstream lines(RenderSummary(moment, false));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace fathom
