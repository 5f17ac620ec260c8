#include "lab/demo/demo_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "lab/demo/demo_canvas.h"
#include "lab/demo/demo_verdict.h"

namespace fathom {
namespace {

constexpr size_t kSummaryLabel = 20;
constexpr size_t kColumn = 24;  // a URL of this machine, and a space
constexpr size_t kRatio = 10;
constexpr size_t kTableWidth = 80;
static_assert(kSummaryLabel + 2 * kColumn + kRatio <= kTableWidth);

// What took the first so long took the second so many times as long; 0 if there is no telling.
double Ratio(Duration first, Duration second) {
  return first == Duration::zero() ? 0 : Seconds(second) / Seconds(first);
}

// A column per side, and one that says how many times the first the second is.
class Table {
 public:
  using Cell = std::function<std::string(const SideMoment&)>;

  Table(const DemoMoment& moment, bool color)
      : sides_(moment.sides),
        compared_(moment.sides.size() == 2 && HasVerdict(moment)),
        canvas_(kTableWidth, color) {}

  Canvas& canvas() { return canvas_; }

  void Heading() {
    PutCells("", [](const SideMoment& side) { return Printable(side.router_mode); }, kBold);
    if (compared_) canvas_.Put(FitRight("ratio", kRatio), kDim);
    canvas_.EndLine();
  }

  void Row(std::string_view label, const Cell& cell, std::string_view style = {}) {
    PutCells(label, cell, style);
    canvas_.EndLine();
  }

  using Time = Duration (*)(const SideMoment&);

  // The ratio stands for a comparison, so it needs as many samples as the headline.
  void Times(std::string_view label, Time time, std::string_view style = {}) {
    PutCells(label, [time](const SideMoment& side) { return TimeText(time(side)); }, style);
    const double ratio = compared_ ? Ratio(time(sides_[0]), time(sides_[1])) : 0;
    if (ratio > 0) canvas_.Put(FitRight(fmt::format("{:.1f}", ratio), kRatio), style);
    canvas_.EndLine();
  }

 private:
  void PutCells(std::string_view label, const Cell& cell, std::string_view style) {
    canvas_.Put(Fit(label, kSummaryLabel), kDim);
    for (const SideMoment& side : sides_) canvas_.Put(FitRight(cell(side), kColumn), style);
  }

  const std::vector<SideMoment>& sides_;
  const bool compared_;
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
  table.Row("time to first token", [](const SideMoment&) { return ""; });
  table.Times("  first turn, p50", [](const SideMoment& s) { return s.first_turn.p50; });
  table.Times("  first turn, p90", [](const SideMoment& s) { return s.first_turn.p90; });
  table.Times("  follow-up, p50", [](const SideMoment& s) { return s.follow_up.p50; }, kCyan);
  table.Times("  follow-up, p90", [](const SideMoment& s) { return s.follow_up.p90; }, kCyan);
  table.Times("next token, p50", [](const SideMoment& s) { return s.next_token_p50; });
  table.Row("prompt reused", [](const SideMoment& s) { return ShareText(s.reused); }, kCyan);
  table.Row("tokens recomputed",
            [](const SideMoment& s) { return AmountText(static_cast<double>(s.recomputed)); });
  table.Row("blocks known",
            [](const SideMoment& s) { return AmountText(static_cast<double>(s.known_blocks)); });
  table.Row("turns per worker", TurnsOfWorkers);
}

}  // namespace

std::string RenderSummary(const DemoMoment& moment, bool color) {
  Table table(moment, color);
  Canvas& canvas = table.canvas();
  canvas.Put("fathom demo", kBold).Put("  " + ElapsedText(moment.elapsed));
  canvas.Put("  " + RenderScene(moment), kDim).EndLine();
  AddRows(table);
  canvas.EndLine();
  std::vector<std::string> verdict = RenderVerdict(moment);
  if (!verdict.empty() && !HasVerdict(moment)) verdict[0] = "Too few samples for a comparison";
  for (const std::string& line : verdict) canvas.Put(line, kBold).EndLine();
  for (const SideMoment& side : moment.sides) {
    if (side.fault.stage != FaultStage::kNone) canvas.Put(RenderFault(side)).EndLine();
  }
  return canvas.Text();
}

}  // namespace fathom
