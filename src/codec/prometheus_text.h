// What do the samples of a Prometheus text page say?
//
// A forgiving reader of the text format 0.0.4, and of OpenMetrics as far as it looks alike:
// comments are passed over, timestamps and exemplars are ignored, and a line that makes no sense is
// skipped and counted, because the lines around it are still good.
//
// Memory  Samples are views into the page, which must outlive them. Nothing is copied but a label
//         value that has escapes in it.
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
  // What stands between the braces.
  std::string_view labels() const { return labels_; }

  // A label's value, the first of that name. `scratch` holds it if it has escapes.
  std::optional<std::string_view> Label(std::string_view name, std::string& scratch) const;

 private:
  std::string_view name_;
  std::string_view labels_;  // known to be well formed
  double value_;
};

class PrometheusReader {
 public:
  explicit PrometheusReader(std::string_view page) : rest_(page) {}

  // In the order of the page; nothing at its end.
  std::optional<PrometheusSample> Next();
  // Lines so far that made no sense.
  uint64_t skipped() const { return skipped_; }

 private:
  std::string_view rest_;
  uint64_t skipped_ = 0;
};

}  // namespace fathom
