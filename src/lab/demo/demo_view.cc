#include "lab/demo/demo_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lab/demo/demo_canvas.h"
#include "lab/demo/demo_side_picture.h"
#include "lab/demo/demo_verdict.h"

namespace fathom {
namespace {

constexpr size_t kMostWidth = 200;  // lines longer than this are harder to read, not easier
constexpr size_t kMostSideWidth = 100;
constexpr size_t kLeastSideWidth = 36;
constexpr size_t kLineWidth = 80;
constexpr size_t kFullRows = 16;  // from here on there is room for more than numbers
constexpr size_t kTallRows = 28;
constexpr std::string_view kBetween = " │ ";
constexpr std::string_view kLongKeys = "b  break one worker's KV events   r  repair them   q  quit";
constexpr std::string_view kShortKeys = "b break   r repair   q quit";

double Largest(const DemoMoment& moment, size_t width) {
  double largest = 0;
  for (const SideMoment& side : moment.sides) {
    const std::vector<double>& all = side.follow_up_history;
    const auto first = all.end() - static_cast<ptrdiff_t>(std::min(all.size(), width));
    for (auto it = first; it != all.end(); ++it) largest = std::max(largest, *it);
  }
  return largest;
}

void DrawSides(Canvas& canvas, const DemoMoment& moment, size_t rows, bool color) {
  if (moment.sides.empty() || rows == 0) return;
  const auto draw = [&](size_t side, size_t width, size_t height) {
    const size_t mine = std::min(width, kMostSideWidth);
    return DrawSide(moment.sides[side], {mine, height, Largest(moment, ChartWidth(mine)), color});
  };
  if (moment.sides.size() == 1) return canvas.Below(draw(0, canvas.width(), rows));
  const size_t half = (canvas.width() - Width(kBetween)) / 2;
  if (half >= kLeastSideWidth) {
    return canvas.Beside(draw(0, half, rows), kBetween, draw(1, half, rows));
  }
  canvas.Below(draw(0, canvas.width(), rows - rows / 2));
  canvas.Below(draw(1, canvas.width(), rows / 2));
}

// What the terminal is too small for is left out: first the blank lines, then the advice, the
// story of the fault and the keys.
Canvas Footer(const DemoMoment& moment, const ViewOptions& options, size_t width, size_t rows) {
  Canvas footer(width, options.color);
  const SideMoment* const side = moment.sides.empty() ? nullptr : &moment.sides[0];
  const bool events = side != nullptr && side->uses_events;
  if (rows >= kFullRows && events) {
    const bool alarm = side->fault.losing();
    if (rows > kFullRows + 6) footer.EndLine();
    footer.Put(RenderFault(*side), alarm ? kRed : kGreen).EndLine();
    if (rows >= kTallRows) footer.Put(RenderFaultAdvice(*side)).EndLine();
  }
  if (rows < 8) return footer;
  std::string_view keys = "Ctrl-C  quit";
  if (options.keys) keys = "q  quit";
  if (options.keys && events) keys = width >= Width(kLongKeys) ? kLongKeys : kShortKeys;
  footer.Put(keys, kDim).EndLine();
  return footer;
}

}  // namespace

std::string RenderView(const DemoMoment& moment, const ViewOptions& options) {
  const size_t columns = static_cast<size_t>(std::max(options.columns, 1));
  const size_t rows = static_cast<size_t>(std::max(options.rows, 1));
  const bool narrow = columns < kMinColumns;
  Canvas canvas(std::min(columns, kMostWidth), options.color);
  canvas.Put("fathom demo", kBold).Put("  " + ElapsedText(moment.elapsed));
  canvas.Put("  " + RenderScene(moment), kDim).EndLine();
  const std::string_view style = HasVerdict(moment) ? kGreen : kDim;
  for (const std::string& line : RenderVerdict(moment)) {
    if (canvas.lines() < rows) canvas.Put(line, style).EndLine();
  }
  if (narrow) {
    if (rows > 3) canvas.Put("The rest needs 40 columns.", kDim).EndLine();
    return canvas.Text();
  }
  if (rows >= kFullRows) canvas.EndLine();
  const Canvas footer = Footer(moment, options, canvas.width(), rows);
  const size_t used = canvas.lines() + footer.lines();
  DrawSides(canvas, moment, rows - std::min(rows, used), options.color);
  canvas.Below(footer);
  return canvas.Text();
}

std::string RenderLines(const DemoMoment& moment) {
  Canvas canvas(kLineWidth, false);
  for (const SideMoment& s : moment.sides) {
    canvas.Put(fmt::format("{} {}: turns={} errors={} follow_up={:.1f}ms reused={}",
                           ElapsedText(moment.elapsed), Printable(s.router_mode), s.turns, s.errors,
                           Seconds(s.follow_up.p50) * 1e3, ShareText(s.reused_lately)));
    canvas.EndLine();
  }
  return canvas.Text();
}

}  // namespace fathom
