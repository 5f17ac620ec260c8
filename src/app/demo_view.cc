#include "app/demo_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace fathom {
namespace {

constexpr size_t kLabel = 12;
constexpr size_t kMaxWidth = 100;  // lines longer than this are harder to read, not easier
constexpr std::array<std::string_view, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

constexpr std::string_view kBold = "1";
constexpr std::string_view kDim = "2";
constexpr std::string_view kRed = "31";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kCyan = "36";

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Each code point of what is drawn here takes one column.
size_t Width(std::string_view text) {
  return text.size() - static_cast<size_t>(std::ranges::count_if(text, Continues));
}

// Cut or filled up to exactly `width` columns.
std::string Fit(std::string_view text, size_t width) {
  const size_t have = Width(text);
  if (have <= width) return std::string(text) + std::string(width - have, ' ');
  if (width == 0) return "";
  size_t bytes = 0;
  for (size_t columns = 0; columns + 1 < width; ++columns) {
    ++bytes;
    while (bytes < text.size() && Continues(text[bytes])) ++bytes;
  }
  return std::string(text.substr(0, bytes)) + "…";
}

std::string FitRight(std::string_view text, size_t width) {
  const size_t have = Width(text);
  return have >= width ? Fit(text, width) : std::string(width - have, ' ') + std::string(text);
}

// Names come from configuration; nothing in them may move the cursor.
std::string Printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return out;
}

std::string Time(Duration d) {
  const double seconds = Seconds(d);
  if (d == Duration::zero()) return "-";
  if (seconds < 0.001) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.01) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  return fmt::format("{:.1f} s", seconds);
}

std::string Elapsed(Duration d) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d).count();
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

std::string Amount(double n) {
  if (n < 10'000) return fmt::format("{:.0f}", n);
  if (n < 10'000'000) return fmt::format("{:.1f}k", n / 1e3);
  return fmt::format("{:.1f}M", n / 1e6);
}

size_t UsableWidth(int columns) {
  return std::min(static_cast<size_t>(std::max(columns, kMinColumns)), kMaxWidth);
}

// Builds a picture line by line; knows its width and whether it has colours.
class Canvas {
 public:
  Canvas(size_t width, bool color) : width_(width), color_(color) {}

  size_t width() const { return width_; }
  size_t lines() const { return lines_; }
  std::string Take() { return std::move(out_); }

  // A piece of the current line, cut at its end.
  Canvas& Put(std::string_view text, std::string_view style = {}) {
    const size_t room = width_ - used_;
    const std::string piece = Width(text) > room ? Fit(text, room) : std::string(text);
    used_ += Width(piece);
    const bool styled = color_ && !style.empty() && !piece.empty();
    if (styled) out_.append("\x1b[").append(style).append("m");
    out_ += piece;
    if (styled) out_ += "\x1b[0m";
    return *this;
  }

  void EndLine() {
    while (out_.ends_with(' ')) out_.pop_back();
    out_ += '\n';
    used_ = 0;
    ++lines_;
  }

  void Row(std::string_view label, std::string_view value, std::string_view style = {}) {
    Put(Fit(label, kLabel), kDim).Put(value, style).EndLine();
  }

 private:
  const size_t width_;
  const bool color_;
  std::string out_;
  size_t used_ = 0;
  size_t lines_ = 0;
};

void DrawTitle(Canvas& canvas, const DemoSnapshot& s) {
  canvas.Put("fathom demo", kBold).Put("  " + Elapsed(s.elapsed));
  canvas.Put("  " + Printable(s.router_mode), kCyan).Put("  " + Printable(s.url), kDim).EndLine();
}

void DrawNumbers(Canvas& canvas, const DemoSnapshot& s) {
  canvas.Put(Fit("turns", kLabel), kDim);
  canvas.Put(fmt::format("{}  {:.1f}/s  ", Amount(static_cast<double>(s.requests)),
                         s.requests_per_second));
  canvas.Put(fmt::format("errors {}", s.errors), s.errors == 0 ? kGreen : kRed).EndLine();
  canvas.Row("tokens", fmt::format("{}/s", Amount(s.tokens_per_second)));
  canvas.Row("next token", fmt::format("p50 {}", Time(s.itl_p50)));
  canvas.Row("first turn", fmt::format("first token p50 {}  p90 {}", Time(s.first_turn_p50),
                                       Time(s.first_turn_p90)));
  canvas.Row("follow-up", fmt::format("first token p50 {}  p90 {}", Time(s.follow_up_p50),
                                      Time(s.follow_up_p90)));
  canvas.Row("reused", fmt::format("{:.0f}% of prompt tokens came from a cache", s.reused * 100),
             kCyan);
  canvas.Row("index", fmt::format("{} blocks known from {} batches of KV events",
                                  Amount(static_cast<double>(s.known_blocks)),
                                  Amount(static_cast<double>(s.event_batches))));
}

void DrawHistory(Canvas& canvas, std::string_view label, const std::vector<double>& values,
                 const std::string& latest) {
  const size_t room = canvas.width() - kLabel - 10;
  canvas.Put(Fit(label, kLabel), kDim).Put(Fit(Sparkline(values, room), room), kCyan);
  canvas.Put(FitRight(latest, 10)).EndLine();
}

std::string LatestTime(const std::vector<double>& seconds) {
  const double latest = seconds.empty() ? 0 : seconds.back();
  return Time(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(latest)));
}

void DrawHistories(Canvas& canvas, const DemoSnapshot& s) {
  DrawHistory(canvas, "turns/s", s.request_history, fmt::format("{:.1f}", s.requests_per_second));
  DrawHistory(canvas, "first turn", s.first_turn_history, LatestTime(s.first_turn_history));
  DrawHistory(canvas, "follow-up", s.follow_up_history, LatestTime(s.follow_up_history));
}

std::string Bar(double share, size_t width) {
  const auto filled =
      static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
  std::string out;
  for (size_t i = 0; i < width; ++i) out += i < filled ? "█" : "░";
  return out;
}

void DrawWorker(Canvas& canvas, const DemoWorker& worker, size_t name, size_t bar) {
  canvas.Put(Fit(Printable(worker.name), name - 1) + " ");
  canvas.Put(FitRight(fmt::format("{}+{}", worker.running, worker.waiting), 8));
  canvas.Put(FitRight(Amount(static_cast<double>(worker.served)), 8));
  canvas.Put(FitRight(fmt::format("{:.0f}%", worker.reused * 100), 8)).Put(" ");
  canvas.Put(Bar(worker.cache_used, bar), kGreen).EndLine();
}

// Name, three numbers of eight columns, and a bar in what is left.
void DrawWorkers(Canvas& canvas, const DemoSnapshot& s, size_t rows) {
  const size_t name = std::clamp<size_t>(canvas.width() / 5, kLabel, 24);
  const size_t bar = canvas.width() - name - 3 * 8 - 1;
  canvas.Put(Fit("worker", name) + FitRight("run+wait", 8) + FitRight("turns", 8) +
                 FitRight("reused", 8) + " cache in use",
             kDim);
  canvas.EndLine();
  const bool all = s.workers.size() < rows;
  const size_t shown = all ? s.workers.size() : rows - std::min<size_t>(rows, 2);
  for (size_t i = 0; i < shown; ++i) DrawWorker(canvas, s.workers[i], name, bar);
  if (!all) canvas.Put(fmt::format("and {} more", s.workers.size() - shown), kDim).EndLine();
}

}  // namespace

std::string Sparkline(const std::vector<double>& values, size_t width) {
  const size_t count = std::min(values.size(), width);
  const auto first = values.end() - static_cast<std::ptrdiff_t>(count);
  const double largest = count == 0 ? 0 : *std::max_element(first, values.end());
  std::string out;
  for (auto value = first; value != values.end(); ++value) {
    const double part = largest > 0 ? std::max(*value, 0.0) / largest : 0;
    out += kBars[static_cast<size_t>(std::lround(part * 7))];
  }
  return out;
}

std::string RenderView(const DemoSnapshot& snapshot, int columns, int rows, bool color) {
  Canvas canvas(UsableWidth(columns), color);
  const auto height = static_cast<size_t>(std::max(rows, 1));
  DrawTitle(canvas, snapshot);
  if (height >= 8) DrawNumbers(canvas, snapshot);
  if (height >= 11) DrawHistories(canvas, snapshot);
  // A header, and at least one line below it.
  if (height >= canvas.lines() + 2) DrawWorkers(canvas, snapshot, height - canvas.lines());
  return canvas.Take();
}

std::string RenderLine(const DemoSnapshot& s) {
  std::string out = fmt::format(
      "{} turns={} errors={} turns/s={:.1f} tokens/s={:.0f} first_turn_p50={:.1f}ms "
      "follow_up_p50={:.1f}ms reused={:.0f}%",
      Elapsed(s.elapsed), s.requests, s.errors, s.requests_per_second, s.tokens_per_second,
      Seconds(s.first_turn_p50) * 1e3, Seconds(s.follow_up_p50) * 1e3, s.reused * 100);
  for (const DemoWorker& worker : s.workers) {
    out += fmt::format(" {}={}", Printable(worker.name), worker.served);
  }
  return out + "\n";
}

std::string RenderSummary(const DemoSnapshot& snapshot, int columns, bool color) {
  Canvas canvas(UsableWidth(columns), color);
  DrawTitle(canvas, snapshot);
  DrawNumbers(canvas, snapshot);
  DrawWorkers(canvas, snapshot, snapshot.workers.size() + 1);
  return canvas.Take();
}

DemoScreen::DemoScreen(int fd) : fd_(fd) {
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  const char* const no_color = std::getenv("NO_COLOR");
  live_ = ::isatty(fd) == 1 && !dumb;
  color_ = live_ && (no_color == nullptr || *no_color == '\0');
}

void DemoScreen::Draw(const DemoSnapshot& snapshot) {
  if (!live_) {
    const auto second = std::chrono::duration_cast<std::chrono::seconds>(snapshot.elapsed).count();
    if (second == last_second_) return;
    last_second_ = second;
    Write(RenderLine(snapshot));
    return;
  }
  winsize size{};
  const bool known = ::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  // The last row stays free, so that the line end of the picture does not scroll the screen.
  const std::string picture =
      RenderView(snapshot, known ? size.ws_col : 80, known ? size.ws_row - 1 : 23, color_);
  Write(Rewind() + picture);
  drawn_ = static_cast<size_t>(std::ranges::count(picture, '\n'));
}

void DemoScreen::Finish(const DemoSnapshot& snapshot) {
  winsize size{};
  const bool known = live_ && ::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  Write(Rewind() + RenderSummary(snapshot, known ? size.ws_col : 80, color_));
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
