#include "lab/mock/timing_profile.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "lab/mock/profile_data.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"h200-llama-3.1-8b", "h200-qwen3-32b",
                                                    "polynomial"};
constexpr std::string_view kMeasuredPrefix = "h200-";

Duration Milliseconds(double ms) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::milli>(std::max(ms, 0.0)));
}

// A straight line through two points.
double Line(double x, double x0, double y0, double x1, double y1) {
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

// The two neighbours between which `at` lies, or the two at the edge beyond which it lies.
template <class Map>
auto Around(const Map& map, double at) {
  auto right = map.lower_bound(at);
  if (right == map.begin()) ++right;
  if (right == map.end()) --right;
  return std::pair(std::prev(right), right);
}

Result<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Fail(Blame::kCaller, "'{}' is not a number", text);
  }
  return value;
}

// Lines of "model,x,y,ms" after a header line; those of other models are passed over.
Result<TimingTable> ReadTable(std::string_view model, std::string_view csv) {
  TimingTable table;
  bool header = true;
  for (const std::string_view line : SplitAny(csv, "\r\n")) {
    const auto cells = SplitAny(line, ",");
    if (std::exchange(header, false) || cells.empty() || cells[0] != model) continue;
    if (cells.size() != 4) return Fail(Blame::kCaller, "'{}' does not have four cells", line);
    TRY(const double x, ParseNumber(cells[1]));
    TRY(const double y, ParseNumber(cells[2]));
    TRY(const double ms, ParseNumber(cells[3]));
    table.Add(x, y, ms);
  }
  if (table.empty()) return Fail(Blame::kCaller, "no times for the model '{}'", model);
  return table;
}

// Milliseconds: 4.209989e-7 n^2 + 1.518344e-2 n + 16.50142 for n new tokens, plus
// max(1, -25.74 p^2 + 54.01 p + 5.74) where p is the share of the cache that is being decoded.
class PolynomialProfile final : public TimingProfile {
 public:
  Duration StepTime(const StepLoad& load) const override {
    double ms = 0;
    if (load.new_tokens > 0) {
      const double n = static_cast<double>(load.new_tokens);
      ms += 4.209989e-7 * n * n + 1.518344e-2 * n + 16.50142;
    }
    if (load.decoding > 0) {
      const double share =
          std::min(1.0, static_cast<double>(load.context_of_decoding) /
                            static_cast<double>(std::max<uint64_t>(load.cache_tokens, 1)));
      ms += std::max(1.0, -25.74 * share * share + 54.01 * share + 5.74);
    }
    return Milliseconds(ms);
  }
};

}  // namespace

double TimingTable::Along(const Row& row, double x) {
  if (row.size() == 1) return row.begin()->second;
  const auto [left, right] = Around(row, x);
  return Line(x, left->first, left->second, right->first, right->second);
}

double TimingTable::At(double x, double y) const {
  CHECK(!rows_.empty());
  if (rows_.size() == 1) return Along(rows_.begin()->second, x);
  const auto [below, above] = Around(rows_, y);
  return Line(y, below->first, Along(below->second, x), above->first, Along(above->second, x));
}

Result<std::unique_ptr<MeasuredProfile>> MeasuredProfile::Read(std::string_view model,
                                                               std::string_view prefill_csv,
                                                               std::string_view decode_csv) {
  auto profile = std::make_unique<MeasuredProfile>();
  TRY(profile->prefill_, ReadTable(model, prefill_csv));
  TRY(profile->decode_, ReadTable(model, decode_csv));
  return profile;
}

Duration MeasuredProfile::Prefill(uint64_t new_tokens, uint64_t cached_tokens) const {
  return Milliseconds(
      prefill_.At(static_cast<double>(new_tokens), static_cast<double>(cached_tokens)));
}

Duration MeasuredProfile::Decode(uint64_t sequences, uint64_t context_each) const {
  return Milliseconds(
      decode_.At(static_cast<double>(sequences), static_cast<double>(context_each)));
}

// A step that prefills and decodes reads the weights once: the decoding sequences add what they
// cost beyond the cheapest decode step.
Duration MeasuredProfile::StepTime(const StepLoad& load) const {
  const Duration decode = load.decoding == 0
                              ? Duration::zero()
                              : Decode(load.decoding, load.context_of_decoding / load.decoding);
  if (load.new_tokens == 0) return decode;
  const Duration prefill = Prefill(load.new_tokens, load.context_of_new / load.new_tokens);
  if (load.decoding == 0) return prefill;
  return prefill + std::max(decode - Decode(1, 0), Duration::zero());
}

std::vector<std::string_view> TimingProfile::Names() { return {kNames.begin(), kNames.end()}; }

Result<std::unique_ptr<TimingProfile>> TimingProfile::Named(std::string_view name) {
  if (name == "polynomial") return std::make_unique<PolynomialProfile>();
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
    return Fail(Blame::kCaller, "no such profile '{}'", name);
  }
  name.remove_prefix(kMeasuredPrefix.size());
  TRY(auto measured, MeasuredProfile::Read(name, kH200Prefill, kH200Decode));
  return measured;
}

}  // namespace fathom
