// What was the usual time of a run? The median: a run that was interrupted does not change it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace fathom {

// Of at least one value.
template <class T>
T Median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

inline double MedianMicroseconds(std::vector<Duration> values) {
  return Seconds(Median(std::move(values))) * 1e6;
}

}  // namespace fathom
