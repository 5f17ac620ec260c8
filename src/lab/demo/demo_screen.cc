#include "lab/demo/demo_screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "lab/demo/demo_canvas.h"
#include "lab/demo/demo_table.h"
#include "lab/demo/demo_verdict.h"
#include "lab/demo/demo_view.h"

namespace fathom {
namespace {

constexpr std::string_view kEnterScreen = "\x1b[?1049h";

winsize SizeOf(int fd) {
  winsize size{};
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return known ? size : winsize{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
}

// From the upper left corner; each line clears what is right of it, the last one what is below.
std::string Placed(std::string_view picture) {
  std::string out = "\x1b[H";
  for (const char c : picture) {
    if (c == '\n') out += "\x1b[K";
    out += c;
  }
  return out + "\x1b[J";
}

}  // namespace

DemoScreen::DemoScreen(int fd) : fd_(fd) {
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  const char* const no_color = std::getenv("NO_COLOR");
  live_ = ::isatty(fd) == 1 && !dumb;
  color_ = live_ && (no_color == nullptr || *no_color == '\0');
}

void DemoScreen::Draw(const DemoMoment& moment) {
  if (!live_) return WriteLines(moment);
  if (!entered_) Write(std::string(kEnterScreen));
  entered_ = true;
  const winsize size = SizeOf(fd_);
  // The last row stays free, so that the line end of the picture does not scroll the screen.
  Write(Placed(RenderView(
      moment, {.columns = size.ws_col, .rows = size.ws_row - 1, .color = color_, .keys = keys_})));
}

void DemoScreen::WriteLines(const DemoMoment& moment) {
  if (next_lines_ == Duration::zero()) WriteOpening(moment);
  WriteFault(moment);
  if (moment.elapsed < next_lines_) return;
  next_lines_ = moment.elapsed - moment.elapsed % kBetweenLines + kBetweenLines;
  Write(RenderLines(moment));
}

void DemoScreen::WriteOpening(const DemoMoment& moment) {
  for (const SideMoment& side : moment.sides) {
    Write(fmt::format("{}: listening at {}\n", Printable(side.router_mode), Printable(side.url)));
  }
  Write(
      "follow_up: p50 time to first token of follow-up turns\n"
      "reused: share of the last 10 s' prompt tokens that were found in a cache\n");
  next_lines_ = kBetweenLines;
}

void DemoScreen::WriteFault(const DemoMoment& moment) {
  for (const SideMoment& side : moment.sides) {
    if (!side.uses_events || &side != &moment.sides[0]) continue;
    if (side.fault.stage == told_) continue;
    told_ = side.fault.stage;
    Write(fmt::format("{} {}\n", ElapsedText(moment.elapsed), RenderFault(side)));
  }
}

void DemoScreen::Finish(const DemoMoment& moment) {
  Leave();
  Write(RenderSummary(moment, color_));
}

void DemoScreen::Leave() {
  if (entered_) Write(kLeaveScreen);
  entered_ = false;
}

void DemoScreen::Write(const std::string& text) const {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace fathom
