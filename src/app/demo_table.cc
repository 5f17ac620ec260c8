#include "app/demo_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "app/demo_canvas.h"

namespace fathom {
namespace {

constexpr size_t kLabel = 20;
constexpr size_t kColumn = 24;  // a URL of this machine, and a space
constexpr size_t kRatio = 10;
constexpr size_t kTableWidth = kLabel + 2 * kColumn + kRatio;

// What took the first so long took the second so many times as long; 0 if there is no telling.
double Ratio(Duration first, Duration second) {
  return first == Duration::zero() ? 0 : Seconds(second) / Seconds(first);
}

std::string Sooner(Duration first, Duration second) {
  const double ratio = Ratio(first, second);
  if (ratio == 0) return "too early to tell";
  if (ratio >= 1.05) return fmt::format("{:.1f} times sooner", ratio);
  if (ratio <= 0.95) return fmt::format("{:.1f} times later", 1 / ratio);
  return "about the same";
}

// A column per side, and one that says how many times the first the second is.
class Table {
 public:
  using Cell = std::function<std::string(const SideMoment&)>;

  Table(const std::vector<SideMoment>& sides, bool color)
      : sides_(sides), canvas_(kTableWidth, color) {}

  Canvas& canvas() { return canvas_; }

  void Heading() {
    PutCells("", [](const SideMoment& side) { return Printable(side.router_mode); }, kBold);
    if (sides_.size() == 2) canvas_.Put(FitRight("ratio", kRatio), kDim);
    canvas_.EndLine();
  }

  void Row(std::string_view label, const Cell& cell, std::string_view style = {}) {
    PutCells(label, cell, style);
    canvas_.EndLine();
  }

  void Times(std::string_view label, Duration SideMoment::* time, std::string_view style = {}) {
    PutCells(label, [time](const SideMoment& side) { return TimeText(side.*time); }, style);
    const double ratio = sides_.size() < 2 ? 0 : Ratio(sides_[0].*time, sides_[1].*time);
    if (ratio > 0) canvas_.Put(FitRight(fmt::format("{:.1f}", ratio), kRatio), style);
    canvas_.EndLine();
  }

 private:
  void PutCells(std::string_view label, const Cell& cell, std::string_view style) {
    canvas_.Put(Fit(label, kLabel), kDim);
    for (const SideMoment& side : sides_) canvas_.Put(FitRight(cell(side), kColumn), style);
  }

  const std::vector<SideMoment>& sides_;
  Canvas canvas_;
};

std::string TurnsOfWorkers(const SideMoment& side) {
  std::string out;
  for (const WorkerMoment& worker : side.workers) {
    if (!out.empty()) out += ' ';
    out += AmountText(static_cast<double>(worker.served));
  }
  return Width(out) < kColumn ? out : "many";
}

void AddRows(Table& table) {
  table.Heading();
  table.Row("", [](const SideMoment& s) { return Printable(s.url); }, kDim);
  table.Row("turns", [](const SideMoment& s) {
    return fmt::format("{}, {:.1f}/s", s.turns, s.turns_per_second);
  });
  table.Row("errors", [](const SideMoment& s) { return fmt::format("{}", s.errors); });
  table.Row("tokens", [](const SideMoment& s) { return AmountText(s.tokens_per_second) + "/s"; });
  table.Times("first turn p50", &SideMoment::first_turn_p50);
  table.Times("first turn p90", &SideMoment::first_turn_p90);
  table.Times("follow-up p50", &SideMoment::follow_up_p50, kCyan);
  table.Times("follow-up p90", &SideMoment::follow_up_p90, kCyan);
  table.Times("next token p50", &SideMoment::next_token_p50);
  table.Row("prompt reused", [](const SideMoment& s) { return ShareText(s.reused); }, kCyan);
  table.Row("blocks known",
            [](const SideMoment& s) { return AmountText(static_cast<double>(s.known_blocks)); });
  table.Row("turns per worker", TurnsOfWorkers);
}

}  // namespace

std::string RenderVerdict(const DemoMoment& moment) {
  if (moment.sides.empty()) return "";
  const SideMoment& first = moment.sides[0];
  if (moment.sides.size() == 1) {
    return fmt::format("{}: follow-up turns {}, first turns {}: {}", Printable(first.router_mode),
                       TimeText(first.follow_up_p50), TimeText(first.first_turn_p50),
                       Sooner(first.follow_up_p50, first.first_turn_p50));
  }
  const SideMoment& second = moment.sides[1];
  return fmt::format("follow-up turns: {} {}, {} {}: {}", Printable(first.router_mode),
                     TimeText(first.follow_up_p50), Printable(second.router_mode),
                     TimeText(second.follow_up_p50),
                     Sooner(first.follow_up_p50, second.follow_up_p50));
}

std::string RenderScene(const DemoMoment& moment) {
  const bool two = moment.sides.size() == 2;
  const size_t workers = moment.sides.empty() ? 0 : moment.sides[0].workers.size();
  return fmt::format("{} workers, {} people{}", workers, moment.people,
                     two ? ", the same conversations on both sides" : "");
}

std::string RenderSummary(const DemoMoment& moment, bool color) {
  Table table(moment.sides, color);
  Canvas& canvas = table.canvas();
  canvas.Put("fathom demo", kBold).Put("  " + ElapsedText(moment.elapsed));
  canvas.Put("  " + RenderScene(moment), kDim).EndLine();
  AddRows(table);
  canvas.EndLine();
  canvas.Put(RenderVerdict(moment), kBold).EndLine();
  return canvas.Text();
}

}  // namespace fathom
