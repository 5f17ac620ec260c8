// How is a picture made of text? Lines of a known width, with colours only if asked for, that can
// be put below or beside each other.
//
// Text  Each code point takes one column; what comes from outside goes through Printable() first.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace fathom {

// Of escape sequences, what stands between "\x1b[" and "m".
constexpr std::string_view kBold = "1";
constexpr std::string_view kDim = "2";
constexpr std::string_view kRed = "31";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kCyan = "36";

class Canvas {
 public:
  Canvas(size_t width, bool color) : width_(width), color_(color) {}

  size_t width() const { return width_; }
  size_t lines() const { return lines_.size(); }

  // A piece of the current line, cut at its end.
  Canvas& Put(std::string_view text, std::string_view style = {});
  void EndLine();

  // Both must not be wider than this one. The shorter one is filled up.
  void Below(const Canvas& other);
  void Beside(const Canvas& left, std::string_view between, const Canvas& right);

  // Lines that end with LF and have no spaces at their ends.
  std::string Text() const;

 private:
  struct Line {
    std::string text;
    size_t width = 0;
  };

  const size_t width_;
  const bool color_;
  Line current_;
  std::vector<Line> lines_;
};

// Columns.
size_t Width(std::string_view text);
// Cut or filled up to exactly `width` columns, to the left or to the right.
std::string Fit(std::string_view text, size_t width);
std::string FitRight(std::string_view text, size_t width);
// Nothing in it can move the cursor.
std::string Printable(std::string_view text);

// "9.0 ms", "-" for nothing.
std::string TimeText(Duration duration);
// "1:15".
std::string ElapsedText(Duration elapsed);
// "123.5k".
std::string AmountText(double amount);
// "62%".
std::string ShareText(double share);

// As much of `width` as ShareText() says, to an eighth of a column: empty only beside "0%", full
// only beside "100%".
std::string Bar(double share, size_t width);
// The last `width` values as bars of eighths; `largest` is the highest bar.
std::string Sparkline(const std::vector<double>& values, size_t width, double largest);
// The same in `height` lines, the uppermost first.
std::vector<std::string> Chart(const std::vector<double>& values, size_t width, size_t height,
                               double largest);

}  // namespace fathom
