// What is there to measure, and what does it say now?
//
// A metric is added once, by whoever raises it, and is raised through the reference that was
// returned. Numbers that live elsewhere, or come and go with a worker, are added by a collector
// each time someone asks.
//
// Threads  Any. Adding and rendering share a mutex; raising a metric takes none, so neither can
// hold
//          up the hot path. Collectors run on the thread that renders, outside the mutex, and
//          several renderings may run one at the same time.
// Memory   Metrics live, at one address, as long as the registry. What a collector captures must
//          live as long too. A family holds at most kMaxLabelSets label sets: the last of them has
//          the value "other" in every label and stands for all that came too late.
// Errors   A family must be added as what the catalogue says it is, and histograms of one
//          family must agree in bounds;
//          anything else is a mistake of ours and stops the process.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "metrics/counter.h"
#include "metrics/exposition.h"
#include "metrics/histogram.h"

namespace fathom {

class Registry {
 public:
  static constexpr size_t kMaxLabelSets = 1000;
  using Collector = std::function<void(Exposition&)>;

  Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The same family and labels (in any order) give the same metric. Families outlive the registry.
  Counter& AddCounter(const MetricFamily& family, Labels labels = {});
  Gauge& AddGauge(const MetricFamily& family, Labels labels = {});
  Histogram& AddHistogram(const MetricFamily& family, std::span<const double> upper_bounds_seconds,
                          Labels labels = {});

  // A collector may add to families that are registered here.
  void AddCollector(Collector collector);

  // Prometheus text, to be sent as Exposition::kContentType.
  std::string Render() const;

 private:
  using AnyMetric =
      std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>, std::unique_ptr<Histogram>>;

  struct Family {
    const MetricFamily* what;
    std::vector<double> upper_bounds;    // of histograms
    std::map<Labels, AnyMetric> series;  // labels sorted by name
  };

  template <class T, class... Args>
  T& Add(const MetricFamily& what, Labels labels, Args... args);
  Family& FamilyOf(const MetricFamily& what, std::span<const double> upper_bounds = {});
  void BoundLabels(const Family& family, Labels& labels);

  mutable std::mutex mutex_;  // guards the two below
  std::map<std::string_view, Family> families_;
  std::vector<Collector> collectors_;
  Counter* overflowed_;  // label sets that became "other"
};

}  // namespace fathom
