// What does the demo's terminal show? One picture of a moment, drawn again in place as it changes:
// the sides beside each other, or one below the other where the terminal is narrow.
//
// Pictures are plain text: lines that end with LF, none wider than asked, with colours only if
// asked for. Moving the cursor is DemoScreen's business alone.
#pragma once

#include <cstdint>
#include <string>

#include "app/demo_moment.h"

namespace fathom {

constexpr int kMinColumns = 40;

// The live picture, at most `rows` lines. Narrower than kMinColumns is drawn as if it were that.
std::string RenderView(const DemoMoment& moment, int columns, int rows, bool color);

// A line per side, for output that is no terminal.
std::string RenderLines(const DemoMoment& moment);

// Draws on a terminal, or writes lines where there is none.
class DemoScreen {
 public:
  // Colours unless NO_COLOR is set; in place if `fd` is a terminal that can.
  explicit DemoScreen(int fd);

  // As often as it should change: output that is no terminal gets lines every kBetweenLines only,
  // after some that say where the routers listen.
  void Draw(const DemoMoment& moment);
  void Finish(const DemoMoment& moment);

  bool live() const { return live_; }

 private:
  static constexpr Duration kBetweenLines = std::chrono::seconds(2);

  void WriteLines(const DemoMoment& moment);
  void Write(const std::string& text) const;
  std::string Rewind() const;

  const int fd_;
  bool live_ = false;
  bool color_ = false;
  size_t drawn_ = 0;  // lines of the last picture
  Duration next_lines_{};
};

}  // namespace fathom
