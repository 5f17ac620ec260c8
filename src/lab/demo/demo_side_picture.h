// What is drawn of one side: its numbers, two charts, and a line per worker, in the columns and
// rows that there are.
#pragma once

#include <cstddef>

#include "lab/demo/demo_canvas.h"
#include "lab/demo/demo_moment.h"

namespace fathom {

struct SideFrame {
  size_t width = 0;
  size_t rows = 0;   // at most
  double scale = 0;  // highest bar of the chart of times, in seconds: the same for both sides
  bool color = false;
};

Canvas DrawSide(const SideMoment& side, const SideFrame& frame);

// How many seconds a chart in a picture of that width shows.
size_t ChartWidth(size_t width);

}  // namespace fathom
