#include "metrics/registry.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "metrics/catalogue.h"

namespace fathom {
namespace {

constexpr std::string_view kOther = "other";

struct Write {
  Exposition& out;
  const MetricFamily& family;
  const Labels& labels;

  void operator()(const std::unique_ptr<Counter>& counter) const {
    out.Add(family, labels, static_cast<double>(counter->Value()));
  }
  void operator()(const std::unique_ptr<Gauge>& gauge) const {
    out.Add(family, labels, static_cast<double>(gauge->Value()));
  }
  void operator()(const std::unique_ptr<Histogram>& histogram) const {
    out.Add(family, labels, histogram->Snapshot());
  }
};

}  // namespace

Registry::Registry() : overflowed_(&AddCounter(Metric("fathom_metrics_label_overflow_total"))) {}

Counter& Registry::AddCounter(const MetricFamily& family, Labels labels) {
  CHECK(family.type == MetricType::kCounter);
  return Add<Counter>(family, std::move(labels));
}

Gauge& Registry::AddGauge(const MetricFamily& family, Labels labels) {
  CHECK(family.type == MetricType::kGauge);
  return Add<Gauge>(family, std::move(labels));
}

Histogram& Registry::AddHistogram(const MetricFamily& family,
                                  std::span<const double> upper_bounds_seconds, Labels labels) {
  CHECK(family.type == MetricType::kHistogram);
  return Add<Histogram>(family, std::move(labels), upper_bounds_seconds);
}

void Registry::AddCollector(Collector collector) {
  const std::scoped_lock lock(mutex_);
  collectors_.push_back(std::move(collector));
}

std::string Registry::Render(const Collector& more) const {
  Exposition out;
  std::vector<Collector> collectors;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, family] : families_) {
      for (const auto& [labels, metric] : family.series) {
        std::visit(Write{out, *family.what, labels}, metric);
      }
    }
    collectors = collectors_;
  }
  // A collector may take its own locks or add a metric; holding ours could deadlock.
  for (const Collector& collect : collectors) collect(out);
  if (more) more(out);
  return out.Text();
}

template <class T, class... Args>
T& Registry::Add(const MetricFamily& what, Labels labels, Args... args) {
  std::ranges::sort(labels);
  CheckLabelNames(labels);
  CheckLabelsOf(what, labels);
  const std::scoped_lock lock(mutex_);
  Family& family = FamilyOf(what, args...);
  BoundLabels(family, labels);
  auto found = family.series.find(labels);
  if (found == family.series.end()) {
    found = family.series.emplace(std::move(labels), std::make_unique<T>(args...)).first;
  }
  return *std::get<std::unique_ptr<T>>(found->second);
}

Registry::Family& Registry::FamilyOf(const MetricFamily& what,
                                     std::span<const double> upper_bounds) {
  auto found = families_.find(what.name);
  if (found == families_.end()) {
    CheckMetricName(what.name);
    Family family{
        .what = &what, .upper_bounds = {upper_bounds.begin(), upper_bounds.end()}, .series = {}};
    found = families_.emplace(what.name, std::move(family)).first;
  }
  CHECK(found->second.what == &what);
  CHECK(std::ranges::equal(found->second.upper_bounds, upper_bounds));
  return found->second;
}

void Registry::BoundLabels(const Family& family, Labels& labels) {
  const bool by_worker = std::ranges::find(family.what->labels(), "worker", &MetricLabel::name) !=
                         family.what->labels().end();
  const size_t most = by_worker ? kMaxWorkerLabelSets : kMaxLabelSets;
  if (family.series.size() + 1 < most || family.series.contains(labels)) return;
  overflowed_->Add();
  for (auto& label : labels) label.second = kOther;
}

}  // namespace fathom
