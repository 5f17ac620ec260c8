#include "diagnose/findings/plot_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace fathom {
namespace {

constexpr double kLargest = 1e290;    // a sum of many is finite too
constexpr double kSmallest = 1e-290;  // so is its inverse

// The smallest of 1, 2, 5, 10 times a power of ten that is not below `least`.
double RoundStep(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

struct Scale {
  double unit;
  std::string_view suffix;
};

Scale ScaleOf(double magnitude) {
  constexpr std::array<Scale, 4> kScales = {{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const Scale& scale : kScales) {
    if (magnitude >= scale.unit * 10 || (magnitude >= scale.unit && scale.unit > 1e3)) return scale;
  }
  return {1, ""};
}

// "-1,234.50"
std::string Grouped(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  const size_t first = text.starts_with('-') ? 1 : 0;
  for (size_t at = std::min(text.find('.'), text.size()); at > first + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

int DecimalsOf(double step) {
  return static_cast<int>(std::clamp(-std::floor(std::log10(step) + 1e-9), 0.0, 9.0));
}

}  // namespace

bool IsPlottable(double value) { return std::isfinite(value) && std::abs(value) < kLargest; }

PlotAxis::PlotAxis(double low, double high, size_t ticks_at_most, Ends ends) {
  if (ends == Ends::kAtTicks && low > 0 && low < high * 0.75) low = 0;
  // Below that, a difference of two values is lost in their own rounding.
  const double noise = std::max(std::abs(low), std::abs(high)) * 1e-9;
  if (high - low <= std::max(noise, kSmallest)) {
    const double margin = std::max(std::abs(high) * 0.5, 1e-9);
    low = low == 0 ? 0 : low - margin;
    high = high == 0 ? 1 : high + margin;
  }
  step_ = RoundStep((high - low) / static_cast<double>(std::max<size_t>(ticks_at_most, 2)));
  const double first = std::floor(low / step_ + 1e-9) * step_;
  const double last = std::ceil(high / step_ - 1e-9) * step_;
  low_ = ends == Ends::kExact ? low : first;
  high_ = ends == Ends::kExact ? high : last;
  const auto count = static_cast<size_t>(std::lround((last - first) / step_));
  for (size_t i = 0; i <= count; ++i) {
    const double tick = first + static_cast<double>(i) * step_;
    const bool inside = tick >= low_ - step_ * 1e-6 && tick <= high_ + step_ * 1e-6;
    if (inside) ticks_.push_back(tick);
  }
}

std::string PlotAxis::Label(double tick) const {
  if (std::abs(tick) < step_ * 1e-6) return "0";
  const double magnitude = std::max(std::abs(low_), std::abs(high_));
  if (magnitude >= 1e15 || magnitude < 1e-6) return fmt::format("{:.3g}", tick);
  const Scale scale = ScaleOf(magnitude);
  return Grouped(tick / scale.unit, DecimalsOf(step_ / scale.unit)).append(scale.suffix);
}

std::string ShortNumber(double value) {
  const double magnitude = std::abs(value);
  if (magnitude == 0) return "0";
  if (magnitude >= 1e15 || magnitude < 1e-6) return fmt::format("{:.3g}", value);
  const Scale scale = magnitude < 1e6 ? Scale{1, ""} : ScaleOf(magnitude);
  const double shown = magnitude / scale.unit;
  const int decimals =
      shown >= 100 ? 0 : std::min(2 - static_cast<int>(std::floor(std::log10(shown))), 9);
  std::string text = Grouped(value / scale.unit, decimals);
  if (text.contains('.')) text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text.append(scale.suffix);
}

}  // namespace fathom
