// Which metrics exist, and what are their values now?
//
// A metric is added once, by the code that raises it, and is raised through the returned reference.
// Values that live elsewhere, or that exist only while a worker does, are added by a collector at
// each rendering.
//
// Threads  Any. Adding and rendering share a mutex; raising a metric takes none, so neither can
//          block the hot path. Collectors run on the thread that renders, outside the mutex,
//          and several renderings may run the same collector at the same time.
// Memory   Metrics stay at one address as long as the registry lives. Everything that a collector
//          captures must live as long too. A family holds at most kMaxLabelSets label sets, or
//          kMaxWorkerLabelSets if it has a series per worker or rank: the last one has the value
//          "other" in every label and counts for all later ones.
// Errors   A family must be added with the type and labels of the catalogue, and histograms of one
//          family must have the same bounds; anything else is a bug and stops the process.
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
  // Enough for the largest fleet: workers come from the operator, not from clients.
  static constexpr size_t kMaxWorkerLabelSets = 16384;
  using Collector = std::function<void(Exposition&)>;

  Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The same family and labels (in any order) give the same metric. Families must outlive the
  // registry.
  Counter& AddCounter(const MetricFamily& family, Labels labels = {});
  Gauge& AddGauge(const MetricFamily& family, Labels labels = {});
  Histogram& AddHistogram(const MetricFamily& family, std::span<const double> upper_bounds_seconds,
                          Labels labels = {});

  // A collector may add to families that are registered here.
  void AddCollector(Collector collector);

  // Prometheus text, to be sent as Exposition::kContentType. `more` adds what only this answer
  // shall contain.
  std::string Render(const Collector& more = {}) const;

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
