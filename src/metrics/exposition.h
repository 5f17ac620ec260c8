// What does one answer to GET /metrics contain?
//
// Collects samples in any order and writes them as Prometheus text format 0.0.4: one HELP and one
// TYPE per family, families sorted by name, however many places add to a family.
//
// Threads  One: created for a single answer.
// Errors   Names are ours, so an invalid one stops the process, as does a family with two types, or
//          with other labels than in the catalogue. Label values come from outside: they are
//          escaped, and bytes that are not UTF-8 become U+FFFD, because Prometheus refuses a whole
//          page for one of them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/histogram.h"
#include "metrics/metric_family.h"

namespace fathom {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Stops the process unless the names are valid in Prometheus, without duplicates, and not reserved.
void CheckMetricName(std::string_view name);
void CheckLabelNames(const Labels& labels);
// Stops the process unless these are the family's labels, in any order.
void CheckLabelsOf(const MetricFamily& family, const Labels& labels);

class Exposition {
 public:
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  // A family of the catalogue: a counter or a gauge; or a histogram. One that was renamed is
  // written under its former name too.
  void Add(const MetricFamily& family, const Labels& labels, double value);
  void Add(const MetricFamily& family, const Labels& labels, const HistogramSnapshot& snapshot);

  // Any other family: mock engines use the names of the real engines. The first help of a family is
  // the one that is shown. Values are doubles, as in Prometheus.
  void AddCounter(std::string_view name, std::string_view help, const Labels& labels, double value);
  void AddGauge(std::string_view name, std::string_view help, const Labels& labels, double value);
  void AddHistogram(std::string_view name, std::string_view help, const Labels& labels,
                    const HistogramSnapshot& snapshot);

  std::string Text() const;

 private:
  struct Family {
    MetricType type;
    std::string help;     // escaped
    std::string samples;  // finished lines
  };

  std::string& SamplesOf(std::string_view name, std::string_view help, MetricType type);

  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace fathom
