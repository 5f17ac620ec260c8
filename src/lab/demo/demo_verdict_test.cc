#include "lab/demo/demo_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/demo/demo_canvas.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

SideMoment Measured(std::string mode, Duration follow_up, uint64_t count) {
  SideMoment side;
  side.router_mode = std::move(mode);
  side.first_turn = {.count = count, .p50 = milliseconds(95)};
  side.follow_up = {.count = count, .p50 = follow_up};
  return side;
}

DemoMoment Compared(Duration first, Duration second, uint64_t first_count = 118,
                    uint64_t second_count = 115) {
  DemoMoment moment;
  moment.sides = {Measured("kv", first, first_count),
                  Measured("round-robin", second, second_count)};
  return moment;
}

TEST(DemoVerdict, SaysHowManyTimesSoonerTheFirstSideAnswers) {
  EXPECT_THAT(RenderVerdict(Compared(milliseconds(15), milliseconds(90))),
              ElementsAre("Follow-up turns start 6.0 times sooner with kv than with round-robin",
                          "p50 time to first token: kv 15 ms (n=118), round-robin 90 ms (n=115)"));
  EXPECT_THAT(RenderVerdict(Compared(milliseconds(90), milliseconds(30)))[0],
              HasSubstr("start 3.0 times later with kv than"));
  EXPECT_EQ(RenderVerdict(Compared(milliseconds(90), milliseconds(92)))[0],
            "Follow-up turns start about as soon with kv as with round-robin");
}

TEST(DemoVerdict, HasNoHeadlineBelowTheLeastSamplesOfEitherSide) {
  for (const auto& [first, second] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 0}, {1, 1}, {29, 29}, {29, 5000}, {5000, 29}}) {
    const DemoMoment moment = Compared(milliseconds(15), milliseconds(90), first, second);
    EXPECT_FALSE(HasVerdict(moment));
    const auto lines = RenderVerdict(moment);
    EXPECT_EQ(lines[0],
              "Measuring the time to first token of follow-up turns; too early to compare");
    EXPECT_THAT(lines[0] + lines[1], Not(HasSubstr("times")));
  }
  EXPECT_TRUE(HasVerdict(Compared(milliseconds(15), milliseconds(90), 30, 30)));
  EXPECT_EQ(RenderVerdict(Compared(milliseconds(15), milliseconds(90), 7, 31))[1],
            "samples: kv 7 of 30, round-robin 30 of 30");
}

TEST(DemoVerdict, ComparesWithFirstTurnsWhereThereIsOneSideOnly) {
  DemoMoment moment = Compared(milliseconds(10), {});
  moment.sides.pop_back();
  EXPECT_THAT(RenderVerdict(moment),
              ElementsAre("With kv, follow-up turns start 9.5 times sooner than first turns",
                          "p50 time to first token: follow-up 10 ms (n=118), first turn 95 ms "
                          "(n=118)"));
  EXPECT_THAT(RenderVerdict(DemoMoment()), IsEmpty());
}

SideMoment Faulty() {
  SideMoment side = Measured("kv", milliseconds(15), 1000);
  side.uses_events = true;
  side.reused_lately = 0.5;
  side.workers = {{.name = "mock-63", .trust = "trusted"}, {.name = "b", .trust = "learning"}};
  return side;
}

TEST(DemoFaultText, TellsEveryStageInEightyColumns) {
  SideMoment side = Faulty();
  std::vector<std::string> told = {RenderFault(side)};
  side.workers[1].trust = "trusted";
  told.push_back(RenderFault(side));
  side.fault.Break("mock-63", 1, 0, seconds(3600));
  told.push_back(RenderFault(side));
  side.fault.Look("event_gap", 123456, seconds(3602));
  told.push_back(RenderFault(side));
  EXPECT_EQ(RenderFaultAdvice(side),
            "The router cleared its index of mock-63. Fix: fathom docs event-gap");
  side.fault.Repair(seconds(3610));
  told.push_back(RenderFault(side));
  side.fault.Look("", 123456, seconds(3625));
  told.push_back(RenderFault(side));
  EXPECT_THAT(
      told,
      ElementsAre("kv: 1 of 2 workers are trusted by their KV events",
                  "kv: all workers are trusted, their KV events describe their caches",
                  "mock-63 loses every second batch of its KV events since 60:00",
                  "mock-63 is doubted (event_gap): reused 100% -> 50%, 123.5k tokens recomputed",
                  "mock-63 was repaired at 60:10; its doubt ends 10 s after the last loss",
                  "mock-63 is trusted again since 60:25; 123.5k tokens recomputed in between"));
  for (const std::string& line : told) EXPECT_LE(Width(line), 80u) << line;
}

TEST(DemoFaultText, IsSilentAboutASideThatDoesNotRouteByEvents) {
  EXPECT_EQ(RenderFault(SideMoment()), "");
  EXPECT_EQ(RenderFaultAdvice(SideMoment()), "");
}

}  // namespace
}  // namespace fathom
