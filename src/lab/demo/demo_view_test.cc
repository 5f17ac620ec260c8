#include "lab/demo/demo_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

SideMoment BusySide(std::string mode, Duration follow_up, size_t workers) {
  SideMoment s;
  s.url = "http://127.0.0.1:8000";
  s.router_mode = std::move(mode);
  s.turns = 123456;
  s.errors = 3;
  s.turns_per_second = 512.4;
  s.tokens_per_second = 16384;
  s.first_turn = {
      .count = 40, .p50 = milliseconds(52), .p90 = milliseconds(61), .p99 = milliseconds(70)};
  s.follow_up = {
      .count = 160, .p50 = follow_up, .p90 = milliseconds(112), .p99 = milliseconds(140)};
  s.next_token_p50 = milliseconds(10);
  s.reused = 0.3;
  s.reused_lately = 0.618;
  s.recomputed_lately = 123456;
  s.known_blocks = 4086;
  s.uses_events = s.router_mode == "kv";
  for (size_t i = 0; i < workers; ++i) {
    WorkerMoment worker{.name = "mock-" + std::to_string(i) + "-with-a-rather-long-näme"};
    worker.running = 5;
    worker.waiting = 2;
    worker.served = 617;
    worker.asked_lately = true;
    worker.reused = 0.5;
    worker.cache_used = 0.25;
    if (s.uses_events) worker.trust = i == 1 ? "doubted" : "trusted";
    if (s.uses_events && i == 1) worker.cause = "block_size_mismatch";
    s.workers.push_back(worker);
  }
  s.follow_up_history.assign(300, Seconds(follow_up));
  s.reuse_history.assign(300, 0.5);
  return s;
}

DemoMoment Busy(size_t workers, size_t sides = 2) {
  DemoMoment moment{.elapsed = seconds(75), .people = 12};
  moment.sides.push_back(BusySide("kv", milliseconds(15), workers));
  if (sides == 2) moment.sides.push_back(BusySide("round-robin", milliseconds(90), workers));
  return moment;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Columns, counting neither escape sequences nor the later bytes of a character.
size_t Columns(const std::string& line) {
  size_t columns = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && line[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(line[i]) & 0xc0) != 0x80) {
      ++columns;
    }
  }
  return columns;
}

void ExpectFits(const DemoMoment& moment, int columns, int rows) {
  for (const bool color : {false, true}) {
    const auto lines = Lines(RenderView(
        moment, {.columns = columns, .rows = rows, .color = color, .keys = rows % 2 == 0}));
    EXPECT_LE(lines.size(), static_cast<size_t>(rows)) << columns << " columns";
    for (const std::string& line : lines) {
      EXPECT_LE(Columns(line), static_cast<size_t>(columns)) << line;
    }
  }
}

std::string Draw(const DemoMoment& moment, int columns, int rows, bool color = false) {
  return RenderView(moment, {.columns = columns, .rows = rows, .color = color, .keys = true});
}

TEST(DemoView, NoLineIsWiderThanTheTerminalAndThereAreNotTooMany) {
  for (const size_t sides : {1, 2}) {
    for (const size_t workers : {0, 1, 2, 8, 64}) {
      const DemoMoment moment = Busy(workers, sides);
      for (int columns = 1; columns <= 210; ++columns) {
        for (const int rows : {1, 2, 5, 7, 8, 9, 12, 16, 23, 50}) ExpectFits(moment, columns, rows);
      }
    }
  }
}

TEST(DemoView, HasNoEscapeCodesWithoutColour) {
  EXPECT_THAT(Draw(Busy(3), 80, 24), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Draw(Busy(3), 80, 24, true), HasSubstr("\x1b[1mfathom demo\x1b[0m"));
}

TEST(DemoView, ShowsTheSidesBesideEachOther) {
  for (const int columns : {80, 118}) {
    const std::string view = Draw(Busy(2), columns, 23);
    EXPECT_THAT(view, HasSubstr("1:15  2 workers, 12 people, the same conversations"));
    EXPECT_THAT(view, HasSubstr("start 6.0 times sooner with kv than with round-robin\n"));
    EXPECT_THAT(view, ContainsRegex("\nkv .*│ round-robin "));
    EXPECT_THAT(view, ContainsRegex("\ntime to first token +│ time to first token\n"));
    EXPECT_THAT(view, ContainsRegex("p50 15 ms +p90 112 ms +│ follow-up +p50 90 ms +p90 112 ms\n"));
    EXPECT_THAT(view, ContainsRegex("reused +62% (█)+.*(░)+ │ reused +62% █"));
    EXPECT_THAT(view, ContainsRegex("turns +123.5k  512.4/s  errors 3 +│"));
    EXPECT_THAT(view, ContainsRegex("mock-0… +5\\+2 +617 +50% █.* trusted +│ mock-0…"));
    EXPECT_THAT(view, ContainsRegex("mock-1… .* doubted +│ mock-1…"));
  }
}

TEST(DemoView, ShowsMoreOfALargeTerminal) {
  const std::string view = Draw(Busy(2), 160, 49);
  EXPECT_THAT(view, ContainsRegex("p90 112 ms +p99 140 ms +n=160"));
  EXPECT_THAT(view, HasSubstr("doubted: block_"));
  EXPECT_THAT(view, ContainsRegex("max 90 ms "));
  EXPECT_THAT(view, ContainsRegex("max 100% "));
  EXPECT_GT(Lines(view).size(), 35u);
  size_t widest = 0;
  for (const std::string& line : Lines(view)) widest = std::max(widest, Columns(line));
  EXPECT_GT(widest, 150u);
}

TEST(DemoView, IsCompleteInEightyByTwentyFour) {
  const auto lines = Lines(Draw(Busy(4), 80, 23));
  EXPECT_EQ(lines.back(), "b  break one worker's KV events   r  repair them   q  quit");
  const std::string view = Draw(Busy(4), 80, 23);
  EXPECT_THAT(view, HasSubstr("mock-3…"));
  EXPECT_THAT(view, HasSubstr("3 of 4 workers are trusted"));
  EXPECT_THAT(view, Not(HasSubstr("more")));
}

TEST(DemoView, HasNoPercentilesOfAFewSamples) {
  DemoMoment moment = Busy(4);
  moment.sides[0].follow_up.count = 9;
  EXPECT_THAT(Draw(moment, 80, 23),
              ContainsRegex("follow-up +measuring \\(n=9\\) +│ follow-up +p50"));
}

TEST(DemoView, HasNoHeadlineBelowTheLeastSamples) {
  DemoMoment moment = Busy(4);
  moment.sides[0].follow_up.count = kLeastSamples - 1;
  for (int columns = 20; columns <= 200; columns += 20) {
    EXPECT_THAT(Draw(moment, columns, 23), Not(HasSubstr("times")));
  }
  EXPECT_THAT(Draw(moment, 80, 23), HasSubstr("samples: kv 29 of 30, round-robin 30 of 30\n"));
}

TEST(DemoView, DrawsNoBarForAWorkerThatWasNotAsked) {
  DemoMoment moment = Busy(1, 1);
  moment.sides[0].workers[0].asked_lately = false;
  moment.sides[0].workers[0].reused = 0;
  EXPECT_THAT(Draw(moment, 50, 23), ContainsRegex("617 +- (░)+ trusted"));
}

TEST(DemoView, NamesTheKeysThatAreRead) {
  const DemoMoment moment = Busy(2);
  EXPECT_EQ(Lines(RenderView(moment, {.keys = false})).back(), "Ctrl-C  quit");
  EXPECT_EQ(Lines(Draw(moment, 50, 40)).back(), "b break   r repair   q quit");
  DemoMoment without = Busy(2);
  without.sides[0].uses_events = false;
  EXPECT_EQ(Lines(Draw(without, 80, 23)).back(), "q  quit");
}

TEST(DemoView, TellsTheFault) {
  DemoMoment moment = Busy(2);
  moment.sides[0].fault.Break("mock-1", 0.7, 0, seconds(60));
  moment.sides[0].fault.Look("event_gap", 2000, seconds(62));
  EXPECT_THAT(Draw(moment, 80, 23, true),
              HasSubstr("\x1b[31mmock-1 is doubted (event_gap): reused 70% -> 62%, 2000 tokens"));
  EXPECT_THAT(Draw(moment, 80, 49), HasSubstr("Fix: fathom docs event-gap\n"));
}

TEST(DemoView, ShowsTheSidesBelowEachOtherWhereItIsNarrow) {
  const std::string view = Draw(Busy(2), 60, 40);
  EXPECT_THAT(view, Not(HasSubstr("│")));
  EXPECT_LT(view.find("\nkv "), view.find("\nround-robin "));
}

TEST(DemoView, DrawsBothSparklinesOnOneScale) {
  const std::string view = Draw(Busy(2), 80, 18);
  EXPECT_THAT(view, ContainsRegex("each second (▂)+ │ each second (█)+\n"));
}

TEST(DemoView, HasOneColumnForOneSide) {
  const std::string view = Draw(Busy(2, 1), 80, 24);
  EXPECT_THAT(view, Not(HasSubstr("│")));
  EXPECT_THAT(view, HasSubstr("With kv, follow-up turns start 3.5 times sooner than first turns"));
}

TEST(DemoView, SaysHowManyWorkersItLeavesOut) {
  const auto lines = Lines(Draw(Busy(64, 1), 80, 23));
  EXPECT_EQ(lines.size(), 23u);
  EXPECT_THAT(lines[lines.size() - 4], ContainsRegex("^and 5[0-9] more$"));
}

TEST(DemoView, LetsNoNameMoveTheCursor) {
  DemoMoment moment = Busy(0);
  moment.sides[0].router_mode = "k\x1b[2Jv";
  moment.sides[0].workers.push_back({.name = "\x1b[2J\n"});
  EXPECT_THAT(Draw(moment, 80, 24), Not(HasSubstr("\x1b")));
  EXPECT_THAT(RenderLines(moment), Not(HasSubstr("\x1b")));
}

TEST(DemoView, DrawsAMomentBeforeAnythingHappened) {
  DemoMoment moment;
  EXPECT_THAT(Draw(moment, 80, 24), HasSubstr("fathom demo  0:00"));
  moment.sides.resize(2);
  EXPECT_THAT(Draw(moment, 80, 24), ContainsRegex("follow-up +measuring .n=0. "));
}

TEST(DemoLines, FitEightyColumns) {
  DemoMoment moment = Busy(1);
  moment.elapsed = std::chrono::hours(2);
  for (SideMoment& side : moment.sides) side.router_mode = "power-of-two";
  for (const std::string& line : Lines(RenderLines(moment))) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(RenderLines(moment), HasSubstr("120:00 power-of-two: turns=123456 errors=3 "
                                             "follow_up=15.0ms reused=62%\n"));
}

}  // namespace
}  // namespace fathom
