#include "metrics/registry.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fathom {
namespace {

constexpr std::string_view kOther = "other";

struct Write {
  Exposition& out;
  const std::string& name;
  const std::string& help;
  const Labels& labels;

  void operator()(const std::unique_ptr<Counter>& counter) const {
    out.AddCounter(name, help, labels, static_cast<double>(counter->Value()));
  }
  void operator()(const std::unique_ptr<Gauge>& gauge) const {
    out.AddGauge(name, help, labels, static_cast<double>(gauge->Value()));
  }
  void operator()(const std::unique_ptr<Histogram>& histogram) const {
    out.AddHistogram(name, help, labels, histogram->Snapshot());
  }
};

}  // namespace

Registry::Registry()
    : overflowed_(
          &AddCounter("fathom_metrics_label_overflow_total",
                      "Label sets beyond the limit of their family, counted as \"other\"")) {}

Counter& Registry::AddCounter(std::string_view name, std::string_view help, Labels labels) {
  return Add<Counter>(MetricType::kCounter, name, help, std::move(labels));
}

Gauge& Registry::AddGauge(std::string_view name, std::string_view help, Labels labels) {
  return Add<Gauge>(MetricType::kGauge, name, help, std::move(labels));
}

Histogram& Registry::AddHistogram(std::string_view name, std::string_view help,
                                  std::span<const double> upper_bounds_seconds, Labels labels) {
  return Add<Histogram>(MetricType::kHistogram, name, help, std::move(labels),
                        upper_bounds_seconds);
}

void Registry::AddCollector(Collector collector) {
  const std::scoped_lock lock(mutex_);
  collectors_.push_back(std::move(collector));
}

std::string Registry::Render() const {
  Exposition out;
  std::vector<Collector> collectors;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, family] : families_) {
      for (const auto& [labels, metric] : family.series) {
        std::visit(Write{out, name, family.help, labels}, metric);
      }
    }
    collectors = collectors_;
  }
  // A collector may take locks of its own or add a metric; holding ours would invite a deadlock.
  for (const Collector& collect : collectors) collect(out);
  return out.Text();
}

template <class T, class... Args>
T& Registry::Add(MetricType type, std::string_view name, std::string_view help, Labels labels,
                 Args... args) {
  std::ranges::sort(labels);
  CheckLabelNames(labels);
  const std::scoped_lock lock(mutex_);
  Family& family = FamilyOf(type, name, help, args...);
  BoundLabels(family, labels);
  auto found = family.series.find(labels);
  if (found == family.series.end()) {
    found = family.series.emplace(std::move(labels), std::make_unique<T>(args...)).first;
  }
  return *std::get<std::unique_ptr<T>>(found->second);
}

Registry::Family& Registry::FamilyOf(MetricType type, std::string_view name, std::string_view help,
                                     std::span<const double> upper_bounds) {
  auto found = families_.find(name);
  if (found == families_.end()) {
    CheckMetricName(name);
    Family family{.type = type,
                  .help = std::string(help),
                  .upper_bounds = {upper_bounds.begin(), upper_bounds.end()},
                  .series = {}};
    found = families_.emplace(std::string(name), std::move(family)).first;
  }
  CHECK(found->second.type == type);
  CHECK(found->second.help == help);
  CHECK(std::ranges::equal(found->second.upper_bounds, upper_bounds));
  return found->second;
}

void Registry::BoundLabels(const Family& family, Labels& labels) {
  if (family.series.size() + 1 < kMaxLabelSets || family.series.contains(labels)) return;
  overflowed_->Add();
  for (auto& label : labels) label.second = kOther;
}

}  // namespace fathom
