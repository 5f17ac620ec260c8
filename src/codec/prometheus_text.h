// Which samples does a Prometheus text page contain?
//
// A lenient reader of the text format 0.0.4, and of OpenMetrics as far as it is the same: comments
// are skipped, timestamps and exemplars are ignored, and an invalid line is skipped and counted,
// because the other lines are still valid.
//
// Memory  Samples are views into the page, which must outlive them. Only label values with escapes
//         are copied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

class PrometheusSample {
 public:
  PrometheusSample(std::string_view name, std::string_view labels, double value)
      : name_(name), labels_(labels), value_(value) {}

  std::string_view name() const { return name_; }
  double value() const { return value_; }  // may be NaN or infinite
  // The text between the braces.
  std::string_view labels() const { return labels_; }

  // The value of the first label of that name. `scratch` holds it if it has escapes.
  std::optional<std::string_view> Label(std::string_view name, std::string& scratch) const;

 private:
  std::string_view name_;
  std::string_view labels_;  // already checked
  double value_;
};

class PrometheusReader {
 public:
  explicit PrometheusReader(std::string_view page) : rest_(page) {}

  // In the order of the page; nullopt at its end.
  std::optional<PrometheusSample> Next();
  // Invalid lines so far.
  uint64_t skipped() const { return skipped_; }

 private:
  std::string_view rest_;
  uint64_t skipped_ = 0;
};

}  // namespace fathom
