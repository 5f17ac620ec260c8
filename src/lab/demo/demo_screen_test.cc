#include "lab/demo/demo_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <string>
#include <vector>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

// What a screen writes where there is no terminal.
std::string Written(const std::vector<Duration>& moments, Duration break_at = seconds(-1)) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  DemoScreen screen(pipe[1]);
  EXPECT_FALSE(screen.live());
  DemoMoment moment;
  moment.sides.resize(2);
  moment.sides[0] = {.router_mode = "kv", .url = "http://127.0.0.1:8000"};
  moment.sides[0].uses_events = true;
  moment.sides[1] = {.router_mode = "round-robin", .url = "http://127.0.0.1:8001"};
  for (const Duration elapsed : moments) {
    moment.elapsed = elapsed;
    if (elapsed == break_at) moment.sides[0].fault.Break("mock-0", 0.5, 0, elapsed);
    screen.Draw(moment);
  }
  screen.Finish(moment);
  ::close(pipe[1]);
  std::string text(16384, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(::read(pipe[0], text.data(), text.size()), 0)));
  ::close(pipe[0]);
  return text;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(DemoScreen, WritesLinesNowAndThenWhereThereIsNoTerminal) {
  const std::string text = Written({milliseconds(0), milliseconds(1900), milliseconds(2100),
                                    milliseconds(3900), milliseconds(4100)});
  const auto lines = Split(text);
  ASSERT_GE(lines.size(), 9u);
  EXPECT_EQ(lines[0], "kv: listening at http://127.0.0.1:8000");
  EXPECT_EQ(lines[1], "round-robin: listening at http://127.0.0.1:8001");
  EXPECT_THAT(lines[2], HasSubstr("time to first token"));
  EXPECT_THAT(lines[4], HasSubstr("0:02 kv: turns=0 errors=0"));
  EXPECT_THAT(lines[5], HasSubstr("0:02 round-robin: turns=0"));
  EXPECT_THAT(lines[6], HasSubstr("0:04 kv: "));
  EXPECT_THAT(lines[8], HasSubstr("fathom demo  0:04"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
}

TEST(DemoScreen, WritesALineWhenTheFaultTakesAnotherTurn) {
  const std::string text =
      Written({seconds(1), milliseconds(1500), seconds(2)}, milliseconds(1500));
  EXPECT_THAT(text, HasSubstr("0:01 mock-0 loses every second batch of its KV events since 0:01\n"
                              "0:02 kv: turns="));
}

}  // namespace
}  // namespace fathom
