// What does the demo's terminal show? One picture of a moment: the sides beside each other, or one
// below the other where the terminal is narrow; more detail where it is large.
//
// Pictures are plain text: lines that end with LF, none wider than asked, with colours only if
// asked for. Moving the cursor is DemoScreen's business alone.
#pragma once

#include <string>

#include "lab/demo/demo_moment.h"

namespace fathom {

// Narrower terminals get the first lines only.
constexpr int kMinColumns = 40;

struct ViewOptions {
  int columns = 80;
  int rows = 24;
  bool color = false;
  bool keys = false;  // keys are read, so the last line names them
};

// The live picture, at most `rows` lines.
std::string RenderView(const DemoMoment& moment, const ViewOptions& options);

// A line per side, at most 80 columns, for output that is no terminal.
std::string RenderLines(const DemoMoment& moment);

}  // namespace fathom
