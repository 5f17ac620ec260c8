#include "lab/demo/demo_table.h"

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
  side.first_turn = {.count = 31, .p50 = milliseconds(95)};
  side.follow_up = {.count = 92, .p50 = follow_up, .p90 = milliseconds(120)};
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

TEST(DemoSummary, HasBothSidesInEachRowAndTheirRatio) {
  const std::string summary = RenderSummary(Two(milliseconds(15), milliseconds(90)), false);
  EXPECT_THAT(summary,
              HasSubstr("fathom demo  0:20  4 workers, 12 people, the same conversations"));
  EXPECT_THAT(summary, ContainsRegex("kv +round-robin +ratio\n"));
  EXPECT_THAT(summary, ContainsRegex("http://127.0.0.1:34773 +http://127.0.0.1:34773\n"));
  EXPECT_THAT(summary, ContainsRegex("turns +123, 6.2/s +123, 6.2/s\n"));
  EXPECT_THAT(summary, ContainsRegex("time to first token\n"));
  EXPECT_THAT(summary, ContainsRegex("  follow-up, p50 +15 ms +90 ms +6.0\n"));
  EXPECT_THAT(summary, ContainsRegex("prompt reused +34% +34%\n"));
  EXPECT_THAT(summary, ContainsRegex("turns per worker +31 30 32 30 +31 30 32 30\n"));
  EXPECT_THAT(summary, HasSubstr("start 6.0 times sooner with kv than with round-robin\n"));
  EXPECT_THAT(summary, Not(HasSubstr("\x1b")));
}

TEST(DemoSummary, HasOneColumnAndNoRatioForOneSide) {
  DemoMoment moment = Two(milliseconds(15), {});
  moment.sides.pop_back();
  const std::string summary = RenderSummary(moment, false);
  EXPECT_THAT(summary, ContainsRegex("  follow-up, p50 +15 ms\n"));
  EXPECT_THAT(summary, Not(HasSubstr("ratio")));
  EXPECT_THAT(summary, Not(HasSubstr("both sides")));
}

TEST(DemoSummary, ComparesNothingAfterTooFewTurns) {
  DemoMoment moment = Two(milliseconds(15), milliseconds(90));
  moment.sides[1].follow_up.count = kLeastSamples - 1;
  const std::string summary = RenderSummary(moment, false);
  EXPECT_THAT(summary, Not(HasSubstr("ratio")));
  EXPECT_THAT(summary, Not(HasSubstr("times")));
  EXPECT_THAT(summary, EndsWith("Too few samples for a comparison\n"
                                "samples: kv 30 of 30, round-robin 29 of 30\n"));
}

TEST(DemoSummary, EndsWithTheFault) {
  DemoMoment moment = Two(milliseconds(15), milliseconds(90));
  moment.sides[0].uses_events = true;
  moment.sides[0].fault.Break("mock-1", 0.5, 0, seconds(5));
  EXPECT_THAT(RenderSummary(moment, false),
              EndsWith("mock-1 loses every second batch of its KV events since 0:05\n"));
}

TEST(DemoSummary, FitsEightyColumnsHoweverManyWorkersThereAre) {
  DemoMoment moment = Two(milliseconds(15), milliseconds(90));
  for (SideMoment& side : moment.sides) side.workers.resize(64);
  std::istringstream lines(RenderSummary(moment, false));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace fathom
