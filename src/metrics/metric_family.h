// What are a metric's name, type and meaning, and what should an operator do about its value?
//
// A row of the catalogue (metrics/catalogue.h). HELP and TYPE on /metrics and the page
// docs/metrics.md come from the same row, so they cannot contradict each other.
//
// Memory   Everything points into the program text and is always valid.
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
  std::string_view values = {};  // all values, separated by spaces; empty: not a closed set
};

// The name that a metric had before. It is exposed under both for one release: base/renamed.h.
struct FormerMetric {
  std::string_view name = {};
  std::string_view release = {};  // the first with the new name
};

struct MetricFamily {
  static constexpr size_t kMaxLabels = 4;

  std::string_view name;
  MetricType type;
  std::string_view help;    // one sentence without a full stop
  std::string_view action;  // what an operator should do at which value; sentences
  std::array<MetricLabel, kMaxLabels> label_slots = {};
  std::string_view page = {};  // under docs/, with details of what to do
  FormerMetric former = {};    // empty unless the metric was renamed

  constexpr std::span<const MetricLabel> labels() const {
    const auto* const end = std::ranges::find(label_slots, std::string_view(), &MetricLabel::name);
    return {label_slots.begin(), end};
  }
};

// Families that belong together on the page.
struct MetricArea {
  std::string_view title;
  std::string_view introduction;
  std::span<const MetricFamily> families;
};

}  // namespace fathom
