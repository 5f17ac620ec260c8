#include "diagnose/findings/plot_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "diagnose/findings/html_text.h"
#include "diagnose/findings/plot_axis.h"
#include "diagnose/findings/shown_text.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// In units of the picture; a unit is about a pixel on a desk, and less on a telephone.
constexpr double kWidth = 480;
constexpr double kLetter = 7.4;  // of the largest size that the style sheet has
constexpr double kRight = 18;
constexpr double kBottom = 40;

struct Area {
  double left;
  double top;
  double right;
  double bottom;
};

struct Point {
  double x;
  double y;
};

double DrawnWidth(std::string_view text) { return static_cast<double>(ColumnsOf(text)) * kLetter; }

std::string Shortened(std::string_view text, size_t columns) {
  const std::string line = OneLine(text);
  if (ColumnsOf(line) <= columns) return line;
  return Wrap(line, columns - 1, LongWords::kBreak).front() + "…";
}

// The end of a long name: "…10.0.0.1:8000 rank 3".
std::string EndOf(std::string_view text, size_t columns) {
  const std::string line = OneLine(text);
  if (ColumnsOf(line) <= columns) return line;
  std::string_view end = line;
  while (ColumnsOf(end) >= columns) end.remove_prefix(FirstCodePoint(end).length);
  return "…" + std::string(end);
}

bool AllDiffer(const std::vector<std::string>& names) {
  return std::set<std::string_view>(names.begin(), names.end()).size() == names.size();
}

// Names that fit, and that tell bars apart: what differs may be at the beginning or at the end.
std::vector<std::string> LabelsOf(std::span<const std::string> names, size_t columns) {
  std::vector<std::string> labels;
  for (const std::string& name : names) labels.push_back(Shortened(name, columns));
  if (AllDiffer(labels)) return labels;
  for (size_t i = 0; i < names.size(); ++i) labels[i] = EndOf(names[i], columns);
  if (AllDiffer(labels)) return labels;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string number = fmt::format(" #{}", i + 1);
    labels[i] = Shortened(names[i], columns - number.size()) + number;
  }
  return labels;
}

std::string_view ToneClass(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "s";
    case Tone::kGood:
      return "good";
    case Tone::kDoubtful:
      return "doubtful";
    case Tone::kBad:
      return "bad";
    case Tone::kFaint:
      return "faint";
  }
  CHECK(false);
}

// One element after the other.
class Drawing {
 public:
  template <class... Args>
  void Add(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void Label(double x, double y, std::string_view anchor, std::string_view text) {
    Add(R"(<text class="axis" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor,
        HtmlText(text));
  }

  void Line(std::string_view kind, Point from, Point to) {
    Add(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", kind, from.x,
        from.y, to.x, to.y);
  }

  // Numbers below, and a line above each.
  void AxisBelow(const PlotAxis& axis, const Area& area, std::string_view label, bool lines) {
    for (const double tick : axis.ticks()) {
      const double x = area.left + axis.At(tick) * (area.right - area.left);
      if (lines) Line("grid", {x, area.top}, {x, area.bottom});
      Label(x, area.bottom + 15, "middle", axis.Label(tick));
    }
    Label((area.left + area.right) / 2, area.bottom + 32, "middle", label);
  }

  std::string Finish(const Plot& plot, double height) && {
    return fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">)"
                       "\n<title>{}</title>\n{}</svg>\n",
                       kWidth, height, HtmlText(plot.title), HtmlText(plot.caption), out_);
  }

 private:
  std::string out_;
};

double Usable(const Plot::Series& series, size_t i) {
  if (i >= series.y.size() || !IsPlottable(series.y[i])) return 0;
  return std::max(series.y[i], 0.0);  // a stack has no room for less than nothing
}

class BarDrawing {
 public:
  explicit BarDrawing(const Plot& plot)
      : plot_(plot),
        count_(std::min(plot.categories.size(), kMaxBars)),
        labels_(LabelsOf(std::span(plot.categories).first(count_), kMostForName)),
        axis_(0, HighestStack(), 5, PlotAxis::Ends::kAtTicks),
        area_{LeftEdge(), 6, kWidth - RightEdge(), 6 + kRow * static_cast<double>(count_)} {}

  std::string Draw() && {
    drawing_.AxisBelow(axis_, area_, plot_.y_label, true);
    for (size_t i = 0; i < count_; ++i) DrawBar(i);
    const size_t hidden = plot_.categories.size() - count_;
    if (hidden > 0) {
      drawing_.Label(4, area_.bottom + 32, "start", fmt::format("and {} more", hidden));
    }
    return std::move(drawing_).Finish(plot_, area_.bottom + kBottom);
  }

 private:
  static constexpr double kRow = 32;
  static constexpr double kBar = 20;
  static constexpr size_t kMostForName = 20;

  double Total(size_t category) const {
    double total = 0;
    for (const Plot::Series& series : plot_.series) total += Usable(series, category);
    return total;
  }

  double HighestStack() const {
    double highest = 0;
    for (size_t i = 0; i < count_; ++i) highest = std::max(highest, Total(i));
    return highest;
  }

  double LeftEdge() const {
    double widest = 0;
    for (const std::string& label : labels_) widest = std::max(widest, DrawnWidth(label));
    return widest + 16;
  }

  // The number behind a bar that is not a stack needs room.
  double RightEdge() const { return plot_.series.size() == 1 ? kRight + 34 : kRight; }

  double X(double value) const { return area_.left + axis_.At(value) * (area_.right - area_.left); }

  void DrawBar(size_t category) {
    const double top = area_.top + kRow * static_cast<double>(category) + (kRow - kBar) / 2;
    drawing_.Label(area_.left - 8, top + kBar * 0.7, "end", labels_[category]);
    double from = 0;
    for (size_t i = 0; i < plot_.series.size(); ++i) {
      const double to = from + Usable(plot_.series[i], category);
      if (to > from) DrawPiece(i, category, {X(from), top}, X(to) - X(from));
      from = to;
    }
    if (plot_.series.size() == 1 && from > 0) {
      drawing_.Label(X(from) + 6, top + kBar * 0.7, "start", ShortNumber(from));
    }
  }

  void DrawPiece(size_t series, size_t category, Point at, double width) {
    const std::string number = ShortNumber(plot_.series[series].y[category]);
    const std::string kind = SeriesClass(plot_, series);
    drawing_.Add(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}">)"
                 "<title>{}, {}: {} {}</title></rect>",
                 kind, at.x, at.y, width, kBar, HtmlText(plot_.categories[category]),
                 HtmlText(plot_.series[series].name), number, HtmlText(plot_.y_label));
    if (plot_.series.size() > 1 && width > DrawnWidth(number) + 8) {
      drawing_.Add(R"(<text class="on {}" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)",
                   kind, at.x + width / 2, at.y + kBar * 0.7, number);
    }
  }

  const Plot& plot_;
  const size_t count_;
  const std::vector<std::string> labels_;
  const PlotAxis axis_;
  const Area area_;
  Drawing drawing_;
};

// The points of a series; nothing where the line is broken.
using Points = std::vector<std::optional<Point>>;

Points PointsOf(const Plot::Series& series) {
  Points points;
  const size_t count =
      series.x.empty() ? series.y.size() : std::min(series.x.size(), series.y.size());
  for (size_t i = 0; i < count; ++i) {
    const Point point{series.x.empty() ? static_cast<double>(i) : series.x[i], series.y[i]};
    const bool usable = IsPlottable(point.x) && IsPlottable(point.y);
    points.push_back(usable ? std::optional(point) : std::nullopt);
  }
  return points;
}

// Of too many points, the lowest and the highest of each stretch: no peak is lost.
Points Thinned(Points points) {
  constexpr size_t kStretches = 200;
  if (points.size() <= 2 * kStretches) return points;
  const auto below = [](const auto& a, const auto& b) {
    return a && b ? a->y < b->y : b.has_value() && !a.has_value();
  };
  Points thin;
  for (size_t i = 0; i < kStretches; ++i) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / kStretches);
    const auto last =
        points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / kStretches);
    auto [low, high] = std::minmax_element(first, last, below);
    if (high < low) std::swap(low, high);
    thin.push_back(*low);
    if (high != low) thin.push_back(*high);
  }
  return thin;
}

class LineDrawing {
 public:
  explicit LineDrawing(const Plot& plot)
      : plot_(plot),
        lines_(LinesOf(plot)),
        x_axis_(AxisOf(&Point::x, 6, PlotAxis::Ends::kExact)),
        y_axis_(AxisOf(&Point::y, 5, PlotAxis::Ends::kAtTicks)),
        area_{LeftEdge(), 26, kWidth - kRight, kHeight - kBottom} {}

  std::string Draw() && {
    for (const double tick : y_axis_.ticks()) {
      const double y = PlaceOf({0, tick}).y;
      drawing_.Line("grid", {area_.left, y}, {area_.right, y});
      drawing_.Label(area_.left - 7, y + 4, "end", y_axis_.Label(tick));
    }
    drawing_.AxisBelow(x_axis_, area_, plot_.x_label, false);
    drawing_.Label(4, 12, "start", plot_.y_label);
    for (size_t i = 0; i < lines_.size(); ++i) DrawLine(i);
    return std::move(drawing_).Finish(plot_, kHeight);
  }

 private:
  static constexpr double kHeight = 250;

  static std::vector<Points> LinesOf(const Plot& plot) {
    std::vector<Points> lines;
    for (const Plot::Series& series : plot.series) lines.push_back(Thinned(PointsOf(series)));
    return lines;
  }

  PlotAxis AxisOf(double Point::* part, size_t ticks, PlotAxis::Ends ends) const {
    std::optional<std::pair<double, double>> range;
    for (const Points& line : lines_) {
      for (const auto& point : line) {
        if (!point) continue;
        const double value = *point.*part;
        if (!range) range.emplace(value, value);
        range->first = std::min(range->first, value);
        range->second = std::max(range->second, value);
      }
    }
    return range ? PlotAxis(range->first, range->second, ticks, ends) : PlotAxis(0, 1, ticks, ends);
  }

  double LeftEdge() const {
    double widest = 0;
    for (const double tick : y_axis_.ticks()) {
      widest = std::max(widest, DrawnWidth(y_axis_.Label(tick)));
    }
    return widest + 14;
  }

  Point PlaceOf(const Point& point) const {
    return {area_.left + x_axis_.At(point.x) * (area_.right - area_.left),
            area_.bottom - y_axis_.At(point.y) * (area_.bottom - area_.top)};
  }

  void DrawLine(size_t series) {
    const Points& line = lines_[series];
    for (size_t first = 0; first < line.size();) {
      size_t last = first;
      while (last < line.size() && line[last]) ++last;
      if (last - first == 1) DrawDot(series, PlaceOf(*line[first]));
      if (last - first > 1) DrawStretch(series, first, last);
      first = last + 1;
    }
  }

  void DrawDot(size_t series, const Point& at) {
    drawing_.Add(R"(<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>)",
                 SeriesClass(plot_, series), at.x, at.y);
  }

  void DrawStretch(size_t series, size_t first, size_t last) {
    std::string points;
    for (size_t i = first; i < last; ++i) {
      const Point at = PlaceOf(*lines_[series][i]);
      fmt::format_to(std::back_inserter(points), "{}{:.1f},{:.1f}", i == first ? "" : " ", at.x,
                     at.y);
    }
    drawing_.Add(R"(<polyline class="line {}" points="{}"><title>{}</title></polyline>)",
                 SeriesClass(plot_, series), points, HtmlText(plot_.series[series].name));
  }

  const Plot& plot_;
  const std::vector<Points> lines_;
  const PlotAxis x_axis_;
  const PlotAxis y_axis_;
  const Area area_;
  Drawing drawing_;
};

bool HasValues(const Plot& plot) {
  return std::ranges::any_of(plot.series, [&](const Plot::Series& series) {
    if (plot.kind == Plot::Kind::kBars && plot.categories.empty()) return false;
    return std::ranges::any_of(series.y, IsPlottable);
  });
}

}  // namespace

std::string PlotSvg(const Plot& plot) {
  if (!HasValues(plot)) {
    Drawing drawing;
    drawing.Label(kWidth / 2, 34, "middle", "no values");
    return std::move(drawing).Finish(plot, 60);
  }
  if (plot.kind == Plot::Kind::kBars) return BarDrawing(plot).Draw();
  return LineDrawing(plot).Draw();
}

std::string SeriesClass(const Plot& plot, size_t series) {
  constexpr size_t kPlainColours = 6;
  constexpr size_t kShades = 3;
  const Tone tone = plot.series[series].tone;
  const auto end = plot.series.begin() + static_cast<std::ptrdiff_t>(series);
  const auto before = static_cast<size_t>(std::count_if(
      plot.series.begin(), end, [&](const Plot::Series& other) { return other.tone == tone; }));
  if (tone == Tone::kPlain) return fmt::format("s{}", before % kPlainColours + 1);
  if (before == 0) return std::string(ToneClass(tone));
  return fmt::format("{} shade{}", ToneClass(tone), before % kShades + 1);
}

}  // namespace fathom
