#include "lab/demo/demo_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace fathom {
namespace {

// By eighths, from one to eight.
constexpr std::array<std::string_view, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> kParts = {"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

// The cell number `index` of a bar that is so many eighths of a cell long.
std::string_view PartOf(const std::array<std::string_view, 8>& parts, size_t eighths, size_t index,
                        std::string_view nothing) {
  if (eighths <= index * 8) return nothing;
  return parts[std::min<size_t>(eighths - index * 8, 8) - 1];
}

int64_t Percent(double share) { return std::llround(share * 100); }

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

size_t Width(std::string_view text) {
  return text.size() - static_cast<size_t>(std::ranges::count_if(text, Continues));
}

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

std::string Printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return out;
}

std::string TimeText(Duration duration) {
  const double seconds = Seconds(duration);
  if (duration == Duration::zero()) return "-";
  if (seconds < 0.001) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.01) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  return fmt::format("{:.1f} s", seconds);
}

std::string ElapsedText(Duration elapsed) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

std::string AmountText(double amount) {
  if (amount < 10'000) return fmt::format("{:.0f}", amount);
  if (amount < 10'000'000) return fmt::format("{:.1f}k", amount / 1e3);
  return fmt::format("{:.1f}M", amount / 1e6);
}

std::string ShareText(double share) { return fmt::format("{}%", Percent(share)); }

std::string Bar(double share, size_t width) {
  const size_t all = width * 8;
  const auto percent = static_cast<size_t>(Percent(std::clamp(share, 0.0, 1.0)));
  size_t eighths = (percent * all + 50) / 100;
  if (percent > 0) eighths = std::max<size_t>(eighths, 1);
  if (percent < 100) eighths = std::min(eighths, all - std::min<size_t>(all, 1));
  std::string out;
  for (size_t i = 0; i < width; ++i) out += PartOf(kParts, eighths, i, "░");
  return out;
}

std::string Sparkline(const std::vector<double>& values, size_t width, double largest) {
  return Chart(values, width, 1, largest).front();
}

std::vector<std::string> Chart(const std::vector<double>& values, size_t width, size_t height,
                               double largest) {
  const size_t count = std::min(values.size(), width);
  std::vector<std::string> lines(height);
  for (size_t i = values.size() - count; i < values.size(); ++i) {
    const double part = largest > 0 ? std::clamp(values[i] / largest, 0.0, 1.0) : 0;
    const auto most = static_cast<double>(height * 8 - 1);
    const size_t eighths = static_cast<size_t>(std::lround(part * most)) + 1;
    for (size_t row = 0; row < height; ++row) {
      lines[row] += PartOf(kBars, eighths, height - 1 - row, " ");
    }
  }
  return lines;
}

Canvas& Canvas::Put(std::string_view text, std::string_view style) {
  const size_t room = width_ - current_.width;
  const std::string piece = Width(text) > room ? Fit(text, room) : std::string(text);
  current_.width += Width(piece);
  const bool styled = color_ && !style.empty() && !piece.empty();
  if (styled) current_.text.append("\x1b[").append(style).append("m");
  current_.text += piece;
  if (styled) current_.text += "\x1b[0m";
  return *this;
}

void Canvas::EndLine() {
  lines_.push_back(std::move(current_));
  current_ = Line();
}

void Canvas::Below(const Canvas& other) {
  lines_.insert(lines_.end(), other.lines_.begin(), other.lines_.end());
}

void Canvas::Beside(const Canvas& left, std::string_view between, const Canvas& right) {
  const Line nothing;
  for (size_t i = 0; i < std::max(left.lines(), right.lines()); ++i) {
    const Line& a = i < left.lines() ? left.lines_[i] : nothing;
    const Line& b = i < right.lines() ? right.lines_[i] : nothing;
    Line both = a;
    both.text.append(left.width() - a.width, ' ').append(between).append(b.text);
    both.width = left.width() + Width(between) + b.width;
    lines_.push_back(std::move(both));
  }
}

std::string Canvas::Text() const {
  std::string out;
  for (const Line& line : lines_) {
    out += line.text;
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
  return out;
}

}  // namespace fathom
