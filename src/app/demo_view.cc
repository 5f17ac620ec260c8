#include "app/demo_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "app/demo_canvas.h"
#include "app/demo_table.h"

namespace fathom {
namespace {

constexpr size_t kLabel = 12;
constexpr size_t kMostWidth = 140;  // lines longer than this are harder to read, not easier
constexpr size_t kMostSideWidth = 100;
constexpr size_t kLeastSideWidth = 36;
constexpr std::string_view kBetween = " │ ";

// One side's column. `scale` is the highest bar of its sparkline, in seconds.
class SidePicture {
 public:
  SidePicture(const SideMoment& side, size_t width, size_t rows, double scale, bool color)
      : side_(side), rows_(rows), scale_(scale), canvas_(width, color) {
    DrawNumbers();
    // A header, a worker, and a line for the others.
    const size_t least = std::min<size_t>(side_.workers.size() + 1, 3);
    if (rows_ >= canvas_.lines() + least) DrawWorkers(rows_ - canvas_.lines());
  }

  const Canvas& canvas() const { return canvas_; }

 private:
  void DrawNumbers();
  void DrawHeading();
  void DrawTurns();
  void DrawWorkers(size_t rows);
  void DrawWorker(const WorkerMoment& worker);
  void Row(std::string_view label, std::string_view value, std::string_view style = {});
  void Times(std::string_view label, Duration p50, Duration p90, std::string_view style = {});
  bool Full() const { return canvas_.lines() >= rows_; }

  const SideMoment& side_;
  const size_t rows_;
  const double scale_;
  Canvas canvas_;
};

void SidePicture::Row(std::string_view label, std::string_view value, std::string_view style) {
  if (Full()) return;
  canvas_.Put(Fit(label, kLabel), kDim).Put(value, style).EndLine();
}

void SidePicture::Times(std::string_view label, Duration p50, Duration p90,
                        std::string_view style) {
  Row(label, fmt::format("p50 {:<8}p90 {}", TimeText(p50), TimeText(p90)), style);
}

// The most telling first: what does not fit is left out from the end.
void SidePicture::DrawNumbers() {
  const size_t room = canvas_.width() - kLabel;
  DrawHeading();
  Times("follow-up", side_.follow_up_p50, side_.follow_up_p90, kBold);
  Row("each second", Sparkline(side_.follow_up_history, room, scale_), kCyan);
  Row("reused", FitRight(ShareText(side_.reused), 4) + " " + Bar(side_.reused, room - 5), kCyan);
  Times("first turn", side_.first_turn_p50, side_.first_turn_p90);
  Row("next token", fmt::format("p50 {:<8}{}/s", TimeText(side_.next_token_p50),
                                AmountText(side_.tokens_per_second)));
  DrawTurns();
  Row("index",
      fmt::format("{} blocks, {} batches", AmountText(static_cast<double>(side_.known_blocks)),
                  AmountText(static_cast<double>(side_.event_batches))));
}

void SidePicture::DrawHeading() {
  if (Full()) return;
  canvas_.Put(Printable(side_.router_mode), kBold).Put("  " + Printable(side_.url), kDim).EndLine();
}

void SidePicture::DrawTurns() {
  if (Full()) return;
  canvas_.Put(Fit("turns", kLabel), kDim);
  canvas_.Put(fmt::format("{}  {:.1f}/s  ", AmountText(static_cast<double>(side_.turns)),
                          side_.turns_per_second));
  canvas_.Put(fmt::format("errors {}", side_.errors), side_.errors == 0 ? kGreen : kRed).EndLine();
}

// Name, three numbers, and a bar in what is left.
void SidePicture::DrawWorkers(size_t rows) {
  canvas_.Put(Fit("worker", kLabel - 4) + FitRight("run+q", 6) + FitRight("turns", 6) +
                  FitRight("reused", 7) + " cache",
              kDim);
  canvas_.EndLine();
  const bool all = side_.workers.size() < rows;
  const size_t shown = all ? side_.workers.size() : rows - std::min<size_t>(rows, 2);
  for (size_t i = 0; i < shown; ++i) DrawWorker(side_.workers[i]);
  if (!all) canvas_.Put(fmt::format("and {} more", side_.workers.size() - shown), kDim).EndLine();
}

void SidePicture::DrawWorker(const WorkerMoment& worker) {
  canvas_.Put(Fit(Printable(worker.name), kLabel - 5) + " ");
  canvas_.Put(FitRight(fmt::format("{}+{}", worker.running, worker.waiting), 6));
  canvas_.Put(FitRight(AmountText(static_cast<double>(worker.served)), 6));
  canvas_.Put(FitRight(ShareText(worker.reused), 7)).Put(" ");
  canvas_.Put(Bar(worker.cache_used, canvas_.width() - (kLabel - 4) - 20), kGreen).EndLine();
}

double LargestOf(const DemoMoment& moment) {
  double largest = 0;
  for (const SideMoment& side : moment.sides) {
    for (const double seconds : side.follow_up_history) largest = std::max(largest, seconds);
  }
  return largest;
}

void DrawSides(Canvas& canvas, const DemoMoment& moment, size_t rows, bool color) {
  if (moment.sides.empty()) return;
  const double scale = LargestOf(moment);
  const auto picture = [&](size_t side, size_t width, size_t height) {
    return SidePicture(moment.sides[side], std::min(width, kMostSideWidth), height, scale, color);
  };
  if (moment.sides.size() == 1) return canvas.Below(picture(0, canvas.width(), rows).canvas());
  const size_t half = (canvas.width() - Width(kBetween)) / 2;
  if (half >= kLeastSideWidth) {
    const SidePicture left = picture(0, half, rows);
    return canvas.Beside(left.canvas(), kBetween, picture(1, half, rows).canvas());
  }
  canvas.Below(picture(0, canvas.width(), rows - rows / 2).canvas());
  canvas.Below(picture(1, canvas.width(), rows / 2).canvas());
}

winsize SizeOf(int fd) {
  winsize size{};
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return known ? size : winsize{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
}

}  // namespace

std::string RenderView(const DemoMoment& moment, int columns, int rows, bool color) {
  Canvas canvas(std::min(static_cast<size_t>(std::max(columns, kMinColumns)), kMostWidth), color);
  const auto height = static_cast<size_t>(std::max(rows, 1));
  canvas.Put("fathom demo", kBold).Put("  " + ElapsedText(moment.elapsed));
  canvas.Put("  " + RenderScene(moment), kDim).EndLine();
  if (height >= 2) canvas.Put(RenderVerdict(moment), kGreen).EndLine();
  if (height >= 8) canvas.EndLine();
  DrawSides(canvas, moment, height - canvas.lines(), color);
  return canvas.Text();
}

std::string RenderLines(const DemoMoment& moment) {
  std::string out;
  for (const SideMoment& s : moment.sides) {
    out += fmt::format(
        "{} {}: turns={} errors={} turns/s={:.1f} tokens/s={:.0f} first_turn_p50={:.1f}ms "
        "follow_up_p50={:.1f}ms reused={:.0f}%\n",
        ElapsedText(moment.elapsed), Printable(s.router_mode), s.turns, s.errors,
        s.turns_per_second, s.tokens_per_second, Seconds(s.first_turn_p50) * 1e3,
        Seconds(s.follow_up_p50) * 1e3, s.reused * 100);
  }
  return out;
}

DemoScreen::DemoScreen(int fd) : fd_(fd) {
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  const char* const no_color = std::getenv("NO_COLOR");
  live_ = ::isatty(fd) == 1 && !dumb;
  color_ = live_ && (no_color == nullptr || *no_color == '\0');
}

void DemoScreen::Draw(const DemoMoment& moment) {
  if (!live_) return WriteLines(moment);
  const winsize size = SizeOf(fd_);
  // The last row stays free, so that the line end of the picture does not scroll the screen.
  const std::string picture = RenderView(moment, size.ws_col, size.ws_row - 1, color_);
  Write(Rewind() + picture);
  drawn_ = static_cast<size_t>(std::ranges::count(picture, '\n'));
}

void DemoScreen::WriteLines(const DemoMoment& moment) {
  if (next_lines_ == Duration::zero()) {
    for (const SideMoment& side : moment.sides) {
      Write(fmt::format("{}: listening at {}\n", Printable(side.router_mode), Printable(side.url)));
    }
    next_lines_ = kBetweenLines;
  }
  if (moment.elapsed < next_lines_) return;
  next_lines_ = moment.elapsed - moment.elapsed % kBetweenLines + kBetweenLines;
  Write(RenderLines(moment));
}

void DemoScreen::Finish(const DemoMoment& moment) {
  Write(Rewind() + RenderSummary(moment, color_));
  drawn_ = 0;
}

// To where the last picture began, and away with it.
std::string DemoScreen::Rewind() const {
  return drawn_ == 0 ? "" : fmt::format("\x1b[{}F\x1b[J", drawn_);
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
