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
using ::testing::HasSubstr;
using ::testing::Not;

DemoSnapshot Busy(size_t workers) {
  DemoSnapshot s;
  s.elapsed = seconds(75);
  s.url = "http://127.0.0.1:8000";
  s.router_mode = "round-robin";
  s.requests = 123456;
  s.errors = 3;
  s.requests_per_second = 512.4;
  s.tokens_per_second = 16384;
  s.first_turn_p50 = milliseconds(52);
  s.first_turn_p90 = milliseconds(61);
  s.follow_up_p50 = milliseconds(9);
  s.follow_up_p90 = milliseconds(12);
  s.reused = 0.618;
  s.itl_p50 = milliseconds(10);
  for (size_t i = 0; i < workers; ++i) {
    DemoWorker worker{.name = "mock-" + std::to_string(8100 + i) + "-with-a-rather-long-näme"};
    worker.running = 5;
    worker.waiting = 2;
    worker.served = 617;
    worker.reused = 0.5;
    worker.cache_used = 0.25;
    s.workers.push_back(worker);
  }
  for (int i = 0; i < 300; ++i) {
    s.request_history.push_back(400 + i % 50);
    s.first_turn_history.push_back(0.05 + 0.0001 * (i % 7));
    s.follow_up_history.push_back(0.01);
  }
  return s;
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

TEST(DemoView, NoLineIsWiderThanTheTerminalAndThereAreNotTooMany) {
  for (const size_t workers : {0, 1, 2, 8, 64}) {
    for (int columns = kMinColumns; columns <= 200; columns += 7) {
      for (const int rows : {1, 2, 5, 7, 8, 9, 10, 12, 24, 50}) {
        for (const bool color : {false, true}) {
          const auto lines = Lines(RenderView(Busy(workers), columns, rows, color));
          EXPECT_LE(lines.size(), static_cast<size_t>(rows)) << workers << " workers";
          for (const std::string& line : lines) {
            EXPECT_LE(Columns(line), static_cast<size_t>(columns)) << line;
          }
        }
      }
    }
  }
}

TEST(DemoView, HasNoEscapeCodesWithoutColour) {
  EXPECT_THAT(RenderView(Busy(3), 80, 24, false), Not(HasSubstr("\x1b")));
  EXPECT_THAT(RenderView(Busy(3), 80, 24, true), HasSubstr("\x1b[1mfathom demo\x1b[0m"));
  EXPECT_THAT(RenderSummary(Busy(3), 80, false), Not(HasSubstr("\x1b")));
}

TEST(DemoView, ShowsTheNumbers) {
  const std::string view = RenderView(Busy(2), 80, 24, false);
  EXPECT_THAT(view, HasSubstr("1:15"));
  EXPECT_THAT(view, HasSubstr("round-robin"));
  EXPECT_THAT(view, HasSubstr("123.5k  512.4/s  errors 3"));
  EXPECT_THAT(view, HasSubstr("first token p50 52 ms  p90 61 ms"));
  EXPECT_THAT(view, HasSubstr("first token p50 9.0 ms  p90 12 ms"));
  EXPECT_THAT(view, HasSubstr("62% of prompt tokens came from a cache"));
  EXPECT_THAT(view, HasSubstr("5+2     617     50%"));
}

TEST(DemoView, SaysHowManyWorkersItLeavesOut) {
  const auto lines = Lines(RenderView(Busy(64), 80, 15, false));
  EXPECT_EQ(lines.size(), 15u);
  EXPECT_EQ(lines.back(), "and 62 more");
  EXPECT_THAT(RenderView(Busy(4), 80, 16, false), Not(HasSubstr("more")));
}

TEST(DemoView, LetsNoNameMoveTheCursor) {
  DemoSnapshot snapshot = Busy(0);
  snapshot.workers.push_back({.name = "evil\x1b[2J\nname"});
  EXPECT_THAT(RenderView(snapshot, 80, 24, false), HasSubstr("evil?[2J?name"));
  EXPECT_THAT(RenderLine(snapshot), Not(HasSubstr("\x1b")));
}

TEST(DemoView, DrawsAMomentBeforeAnythingHappened) {
  const std::string view = RenderView(DemoSnapshot(), 80, 24, false);
  EXPECT_THAT(view, HasSubstr("p50 -  p90 -"));
}

TEST(Sparkline, ScalesToTheLargestOfTheValuesItShows) {
  EXPECT_EQ(Sparkline({1000, 0, 7, 14}, 3), "▁▅█");
  EXPECT_EQ(Sparkline({0, 0}, 8), "▁▁");
  EXPECT_EQ(Sparkline({}, 8), "");
}

TEST(DemoScreen, WritesOneLinePerSecondWhereThereIsNoTerminal) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  DemoScreen screen(pipe[1]);
  EXPECT_FALSE(screen.live());
  DemoSnapshot snapshot = Busy(1);
  for (const int moment : {1000, 1200, 1900, 2100}) {
    snapshot.elapsed = milliseconds(moment);
    screen.Draw(snapshot);
  }
  std::array<char, 4096> out{};
  const ssize_t n = ::read(pipe[0], out.data(), out.size());
  ASSERT_GT(n, 0);
  const std::string text(out.data(), static_cast<size_t>(n));
  EXPECT_EQ(Lines(text).size(), 2u);
  EXPECT_THAT(text, HasSubstr("turns=123456 errors=3"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace fathom
