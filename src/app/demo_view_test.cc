#include "app/demo_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <string>

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
  s.first_turn_p50 = milliseconds(52);
  s.first_turn_p90 = milliseconds(61);
  s.follow_up_p50 = follow_up;
  s.follow_up_p90 = milliseconds(112);
  s.next_token_p50 = milliseconds(10);
  s.reused = 0.618;
  for (size_t i = 0; i < workers; ++i) {
    WorkerMoment worker{.name = "mock-" + std::to_string(i) + "-with-a-rather-long-näme"};
    worker.running = 5;
    worker.waiting = 2;
    worker.served = 617;
    worker.reused = 0.5;
    worker.cache_used = 0.25;
    s.workers.push_back(worker);
  }
  s.follow_up_history.assign(300, Seconds(follow_up));
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
    const auto lines = Lines(RenderView(moment, columns, rows, color));
    EXPECT_LE(lines.size(), static_cast<size_t>(rows)) << columns << " columns";
    for (const std::string& line : lines) {
      EXPECT_LE(Columns(line), static_cast<size_t>(columns)) << line;
    }
  }
}

TEST(DemoView, NoLineIsWiderThanTheTerminalAndThereAreNotTooMany) {
  for (const size_t sides : {1, 2}) {
    for (const size_t workers : {0, 1, 2, 8, 64}) {
      const DemoMoment moment = Busy(workers, sides);
      for (int columns = kMinColumns; columns <= 200; columns += 7) {
        for (const int rows : {1, 2, 5, 7, 8, 9, 12, 16, 24, 50}) ExpectFits(moment, columns, rows);
      }
    }
  }
}

TEST(DemoView, HasNoEscapeCodesWithoutColour) {
  EXPECT_THAT(RenderView(Busy(3), 80, 24, false), Not(HasSubstr("\x1b")));
  EXPECT_THAT(RenderView(Busy(3), 80, 24, true), HasSubstr("\x1b[1mfathom demo\x1b[0m"));
}

TEST(DemoView, ShowsTheSidesBesideEachOther) {
  for (const int columns : {80, 120}) {
    const std::string view = RenderView(Busy(2), columns, 24, false);
    EXPECT_THAT(view, HasSubstr("1:15  2 workers, 12 people, the same conversations"));
    EXPECT_THAT(view, HasSubstr("kv 15 ms, round-robin 90 ms: 6.0 times sooner\n"));
    EXPECT_THAT(view, ContainsRegex("\nkv .*│ round-robin "));
    EXPECT_THAT(view, ContainsRegex("p50 15 ms +p90 112 ms +│ follow-up +p50 90 ms +p90 112 ms\n"));
    EXPECT_THAT(view, ContainsRegex("reused +62% (█)+(░)+ │ reused +62% (█)+(░)+\n"));
    EXPECT_THAT(view, ContainsRegex("turns +123.5k  512.4/s  errors 3 +│"));
    EXPECT_THAT(view, ContainsRegex("mock-0… +5\\+2 +617 +50% (█)+(░)+ │ mock-0…"));
  }
}

TEST(DemoView, ShowsTheSidesBelowEachOtherWhereItIsNarrow) {
  const std::string view = RenderView(Busy(2), 60, 40, false);
  EXPECT_THAT(view, Not(HasSubstr("│")));
  EXPECT_LT(view.find("\nkv "), view.find("\nround-robin "));
}

TEST(DemoView, DrawsBothSparklinesOnOneScale) {
  const std::string view = RenderView(Busy(2), 80, 24, false);
  EXPECT_THAT(view, ContainsRegex("each second (▂)+ │ each second (█)+\n"));
}

TEST(DemoView, HasOneColumnForOneSide) {
  const std::string view = RenderView(Busy(2, 1), 80, 24, false);
  EXPECT_THAT(view, Not(HasSubstr("│")));
  EXPECT_THAT(view, HasSubstr("kv: follow-up turns 15 ms, first turns 52 ms: 3.5 times sooner"));
}

TEST(DemoView, SaysHowManyWorkersItLeavesOut) {
  const auto lines = Lines(RenderView(Busy(64, 1), 80, 15, false));
  EXPECT_EQ(lines.size(), 15u);
  EXPECT_EQ(lines.back(), "and 62 more");
  EXPECT_THAT(RenderView(Busy(4), 80, 16, false), Not(HasSubstr("more")));
}

TEST(DemoView, LetsNoNameMoveTheCursor) {
  DemoMoment moment = Busy(0);
  moment.sides[0].router_mode = "k\x1b[2Jv";
  moment.sides[0].workers.push_back({.name = "\x1b[2J\n"});
  EXPECT_THAT(RenderView(moment, 80, 24, false), Not(HasSubstr("\x1b")));
  EXPECT_THAT(RenderLines(moment), Not(HasSubstr("\x1b")));
}

TEST(DemoView, DrawsAMomentBeforeAnythingHappened) {
  DemoMoment moment;
  EXPECT_THAT(RenderView(moment, 80, 24, false), HasSubstr("fathom demo  0:00"));
  moment.sides.resize(2);
  EXPECT_THAT(RenderView(moment, 80, 24, false), ContainsRegex("p50 - +p90 -"));
}

// What a screen writes where there is no terminal.
std::string Written(const std::vector<Duration>& moments) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  DemoScreen screen(pipe[1]);
  EXPECT_FALSE(screen.live());
  DemoMoment moment = Busy(1);
  for (const Duration elapsed : moments) {
    moment.elapsed = elapsed;
    screen.Draw(moment);
  }
  screen.Finish(moment);
  ::close(pipe[1]);
  std::string text(16384, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(::read(pipe[0], text.data(), text.size()), 0)));
  ::close(pipe[0]);
  return text;
}

TEST(DemoScreen, WritesLinesNowAndThenWhereThereIsNoTerminal) {
  const std::string text = Written({milliseconds(0), milliseconds(1900), milliseconds(2100),
                                    milliseconds(3900), milliseconds(4100)});
  const auto lines = Lines(text);
  ASSERT_GE(lines.size(), 6u);
  EXPECT_EQ(lines[0], "kv: listening at http://127.0.0.1:8000");
  EXPECT_EQ(lines[1], "round-robin: listening at http://127.0.0.1:8000");
  EXPECT_THAT(lines[2], HasSubstr("0:02 kv: turns=123456 errors=3"));
  EXPECT_THAT(lines[3], HasSubstr("0:02 round-robin: turns=123456"));
  EXPECT_THAT(lines[4], HasSubstr("0:04 kv: "));
  EXPECT_THAT(lines[6], HasSubstr("fathom demo  0:04"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace fathom
