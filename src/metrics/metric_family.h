// What is a metric called, of which kind is it, what does it mean, and what does one do about it?
//
// A row of the catalogue (metrics/catalogue.h). HELP and TYPE on /metrics and the page
// docs/metrics.md come from the same row, so neither can say what the other does not.
//
// Memory   Everything points into the program text and lives forever.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fathom {

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram };
std::string_view Name(MetricType type);

struct MetricLabel {
  std::string_view name;
  std::string_view values = {};  // all that there are, with spaces between; empty: no closed set
};

struct MetricFamily {
  static constexpr size_t kMaxLabels = 3;

  std::string_view name;
  MetricType type;
  std::string_view help;    // one sentence without a full stop
  std::string_view action;  // what its value asks of an operator; sentences
  std::array<MetricLabel, kMaxLabels> label_slots = {};
  std::string_view page = {};  // under docs/, of what to do in detail

  constexpr std::span<const MetricLabel> labels() const {
    const auto* const end = std::ranges::find(label_slots, std::string_view(), &MetricLabel::name);
    return {label_slots.begin(), end};
  }
};

// Families that one looks at together.
struct MetricArea {
  std::string_view title;
  std::string_view introduction;
  std::span<const MetricFamily> families;
};

}  // namespace fathom
