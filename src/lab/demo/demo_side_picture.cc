#include "lab/demo/demo_side_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace fathom {
namespace {

constexpr size_t kLabel = 12;
constexpr size_t kNumbers = 9;  // heading, 2 times, chart, 2 shares, turns, next token, index
constexpr size_t kTitles = 2;
constexpr uint64_t kLeastForPercentiles = 10;  // a p90 of fewer is their maximum
constexpr size_t kGaps = 3;
constexpr size_t kWide = 72;  // columns from which on rows have more cells

size_t Take(size_t& spare, size_t most) {
  const size_t taken = std::min(spare, most);
  spare -= taken;
  return taken;
}

// How the rows are spent: numbers first, then a line per worker, then titles, gaps, charts.
struct Plan {
  Plan(size_t rows, size_t workers) {
    size_t spare = rows - std::min(rows, kNumbers + workers + 1);
    titles = spare >= kTitles;
    if (titles) spare -= kTitles;
    if (spare >= kGaps + 2) gaps = Take(spare, kGaps) > 0;
    times += Take(spare, 3);
    if (spare >= 2) shares = Take(spare, 4);
    times += Take(spare, 4);
    shares += shares > 0 ? Take(spare, 4) : 0;
  }
  bool titles = false;
  bool gaps = false;
  size_t times = 1;   // height of the chart of times
  size_t shares = 0;  // and of the chart of reuse
};

class SidePicture {
 public:
  SidePicture(const SideMoment& side, const SideFrame& frame)
      : side_(side),
        frame_(frame),
        plan_(frame.rows, side.workers.size()),
        canvas_(frame.width, frame.color) {
    DrawTimes();
    DrawShares();
    DrawRates();
    // A header, a worker, and a line for the others.
    const size_t least = std::min<size_t>(side_.workers.size() + 1, 3);
    if (frame_.rows < canvas_.lines() + least) return;
    if (plan_.gaps) canvas_.EndLine();
    DrawWorkers(frame_.rows - canvas_.lines());
  }

  Canvas Take() { return std::move(canvas_); }

 private:
  void DrawTimes();
  void DrawShares();
  void DrawRates();
  void DrawWorkers(size_t rows);
  void DrawWorkerHeader();
  void DrawWorker(const WorkerMoment& worker);
  void DrawTrust(const WorkerMoment& worker);
  void DrawChart(const std::vector<double>& values, size_t height, double largest,
                 const std::string& scale);
  void Title(std::string_view title);
  void Row(std::string_view label, std::string_view value, std::string_view style = {});
  void Times(std::string_view label, const LatencyMoment& latency, std::string_view style = {});
  bool Full() const { return canvas_.lines() >= frame_.rows; }
  bool wide() const { return canvas_.width() >= kWide; }
  size_t trust_width() const { return !side_.uses_events ? 0 : wide() ? 20 : 9; }
  size_t bar_width() const;

  const SideMoment& side_;
  const SideFrame frame_;
  const Plan plan_;
  Canvas canvas_;
};

void SidePicture::Row(std::string_view label, std::string_view value, std::string_view style) {
  if (Full()) return;
  canvas_.Put(Fit(label, kLabel), kDim).Put(value, style).EndLine();
}

void SidePicture::Title(std::string_view title) {
  if (!plan_.titles || Full()) return;
  canvas_.Put(title, kDim).EndLine();
}

void SidePicture::Times(std::string_view label, const LatencyMoment& latency,
                        std::string_view style) {
  if (latency.count < kLeastForPercentiles) {
    return Row(label, fmt::format("measuring (n={})", latency.count), kDim);
  }
  std::string text =
      fmt::format("p50 {:<8}p90 {:<8}", TimeText(latency.p50), TimeText(latency.p90));
  if (wide()) {
    text += fmt::format("p99 {:<8}n={}", TimeText(latency.p99),
                        AmountText(static_cast<double>(latency.count)));
  }
  Row(label, text, style);
}

void SidePicture::DrawChart(const std::vector<double>& values, size_t height, double largest,
                            const std::string& scale) {
  const auto lines = Chart(values, ChartWidth(canvas_.width()), height, largest);
  for (size_t i = 0; i < height; ++i) {
    Row(i == 0 ? "each second" : i == 1 ? "max " + scale : "", lines[i], kCyan);
  }
}

void SidePicture::DrawTimes() {
  if (Full()) return;
  canvas_.Put(Printable(side_.router_mode), kBold).Put("  " + Printable(side_.url), kDim).EndLine();
  Title("time to first token");
  Times("follow-up", side_.follow_up, kBold);
  Times("first turn", side_.first_turn);
  const auto scale = std::chrono::duration<double>(frame_.scale);
  DrawChart(side_.follow_up_history, plan_.times, frame_.scale,
            TimeText(std::chrono::duration_cast<Duration>(scale)));
}

void SidePicture::DrawShares() {
  if (plan_.gaps) canvas_.EndLine();
  Title("prompt tokens of the last 10 s");
  const size_t room = canvas_.width() - kLabel;
  Row("reused",
      FitRight(ShareText(side_.reused_lately), 4) + " " + Bar(side_.reused_lately, room - 5),
      kCyan);
  if (plan_.shares > 0) DrawChart(side_.reuse_history, plan_.shares, 1, "100%");
  Row("recomputed", AmountText(static_cast<double>(side_.recomputed_lately)) + ", computed before");
}

void SidePicture::DrawRates() {
  if (plan_.gaps) canvas_.EndLine();
  if (!Full()) {
    canvas_.Put(Fit("turns", kLabel), kDim);
    canvas_.Put(fmt::format("{}  {:.1f}/s  ", AmountText(static_cast<double>(side_.turns)),
                            side_.turns_per_second));
    canvas_.Put(fmt::format("errors {}", side_.errors), side_.errors == 0 ? kGreen : kRed);
    canvas_.EndLine();
  }
  Row("next token", fmt::format("p50 {:<8}{} tokens/s", TimeText(side_.next_token_p50),
                                AmountText(side_.tokens_per_second)));
  Row("index",
      fmt::format("{} blocks, {} batches", AmountText(static_cast<double>(side_.known_blocks)),
                  AmountText(static_cast<double>(side_.event_batches))));
}

size_t SidePicture::bar_width() const {
  const size_t cells = (wide() ? 12 + 7 + 8 : 7) + 6 + 6 + 5 + 1 + trust_width();
  return canvas_.width() - cells;
}

void SidePicture::DrawWorkerHeader() {
  canvas_.Put(Fit("worker", wide() ? 12 : 7) + FitRight("run+q", 6) + FitRight("turns", 6) +
                  Fit(" reused", 6 + bar_width()),
              kDim);
  if (wide()) canvas_.Put(FitRight("known", 7) + FitRight("in use", 8), kDim);
  if (side_.uses_events) canvas_.Put(" trust", kDim);
  canvas_.EndLine();
}

void SidePicture::DrawWorkers(size_t rows) {
  DrawWorkerHeader();
  const bool all = side_.workers.size() < rows;
  const size_t shown = all ? side_.workers.size() : rows - std::min<size_t>(rows, 2);
  for (size_t i = 0; i < shown; ++i) DrawWorker(side_.workers[i]);
  if (!all) canvas_.Put(fmt::format("and {} more", side_.workers.size() - shown), kDim).EndLine();
}

// Every bar stands right behind its number.
void SidePicture::DrawWorker(const WorkerMoment& worker) {
  canvas_.Put(Fit(Printable(worker.name), wide() ? 12 : 7));
  canvas_.Put(FitRight(fmt::format("{}+{}", worker.running, worker.waiting), 6));
  canvas_.Put(FitRight(AmountText(static_cast<double>(worker.served)), 6));
  canvas_.Put(FitRight(worker.asked_lately ? ShareText(worker.reused) : "-", 5)).Put(" ");
  canvas_.Put(Bar(worker.reused, bar_width()), kCyan);
  if (wide()) {
    canvas_.Put(FitRight(AmountText(static_cast<double>(worker.known_blocks)), 7));
    canvas_.Put(FitRight(ShareText(worker.cache_used), 8));
  }
  DrawTrust(worker);
  canvas_.EndLine();
}

void SidePicture::DrawTrust(const WorkerMoment& worker) {
  if (!side_.uses_events) return;
  const bool doubted = !worker.cause.empty();
  canvas_.Put(" ").Put(worker.trust, doubted ? kRed : kGreen);
  if (doubted && wide()) canvas_.Put(": " + worker.cause, kRed);
}

}  // namespace

size_t ChartWidth(size_t width) { return width - kLabel; }

Canvas DrawSide(const SideMoment& side, const SideFrame& frame) {
  return SidePicture(side, frame).Take();
}

}  // namespace fathom
