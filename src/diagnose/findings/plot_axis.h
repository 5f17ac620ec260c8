// Where do the ticks of an axis stand, and what is written at them?
//
// Ticks are 1, 2 or 5 times a power of ten apart. Whatever the numbers are, there are few of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fathom {

// Whether a plot can show it: finite, and small enough for differences to be finite too.
bool IsPlottable(double value);

class PlotAxis {
 public:
  enum class Ends : uint8_t {
    kAtTicks,  // reaches to the next tick on either side; begins at zero where that is near
    kExact,
  };

  // Covers [low, high], both plottable. An empty range is made one.
  PlotAxis(double low, double high, size_t ticks_at_most, Ends ends);

  // 0 at the low end, 1 at the high one.
  double At(double value) const { return (value - low_) / (high_ - low_); }
  const std::vector<double>& ticks() const { return ticks_; }
  // As exact as the distance between ticks asks for: "0.25", "1,500", "20k", "3M".
  std::string Label(double tick) const;

 private:
  double low_;
  double high_;
  double step_;
  std::vector<double> ticks_;
};

// A value for a reader, to three or four digits: "846", "34.3", "0.012", "5,504", "1.2M".
std::string ShortNumber(double value);

}  // namespace fathom
