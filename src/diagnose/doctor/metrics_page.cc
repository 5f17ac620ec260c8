#include "diagnose/doctor/metrics_page.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/peer_text.h"

namespace fathom {
namespace {

constexpr size_t kLongestLabel = 200;

bool Has(const PrometheusSample& sample, std::string_view label, std::string_view value) {
  if (label.empty()) return true;
  std::string scratch;
  return sample.Label(label, scratch) == value;
}

}  // namespace

Observations Observations::Since(const Observations& earlier) const {
  if (count < earlier.count || sum < earlier.sum) return *this;
  return {.sum = sum - earlier.sum, .count = count - earlier.count};
}

MetricsPage::MetricsPage(std::string page) : page_(std::move(page)) {
  PrometheusReader reader(page_);
  while (samples_.size() < kMaxSamples) {
    const auto sample = reader.Next();
    if (!sample) break;
    if (std::isfinite(sample->value())) samples_.push_back(*sample);
  }
  // Those of one name in the order of the page.
  std::ranges::sort(samples_, {}, [](const PrometheusSample& sample) {
    return std::pair(sample.name(), sample.name().data());
  });
}

std::span<const PrometheusSample> MetricsPage::Samples(std::string_view name) const {
  return std::ranges::equal_range(samples_, name, {}, &PrometheusSample::name);
}

bool MetricsPage::HasPrefix(std::string_view prefix) const {
  const auto at = std::ranges::lower_bound(samples_, prefix, {}, &PrometheusSample::name);
  return at != samples_.end() && at->name().starts_with(prefix);
}

std::optional<double> MetricsPage::Sum(std::string_view name, std::string_view label,
                                       std::string_view value) const {
  std::optional<double> sum;
  for (const PrometheusSample& sample : Samples(name)) {
    if (Has(sample, label, value)) sum = sum.value_or(0) + sample.value();
  }
  return sum;
}

std::optional<double> MetricsPage::SumOfFirst(std::span<const std::string_view> names) const {
  for (const std::string_view name : names) {
    if (const auto sum = Sum(name)) return sum;
  }
  return std::nullopt;
}

std::optional<double> MetricsPage::Largest(std::string_view name) const {
  std::optional<double> largest;
  for (const PrometheusSample& sample : Samples(name)) {
    largest = std::max(largest.value_or(sample.value()), sample.value());
  }
  return largest;
}

MetricsPage::ByLabel MetricsPage::SumBy(std::string_view name, std::string_view label) const {
  ByLabel sums;
  std::string scratch;
  for (const PrometheusSample& sample : Samples(name)) {
    const auto value = sample.Label(label, scratch);
    if (!value) continue;
    std::string shown = Shown(*value, kLongestLabel);
    if (sums.size() >= kMaxLabels && !sums.contains(shown)) continue;
    sums[std::move(shown)] += sample.value();
  }
  return sums;
}

Observations MetricsPage::Histogram(std::string_view name, std::string_view label,
                                    std::string_view value) const {
  const std::string base(name);
  return {.sum = Sum(base + "_sum", label, value).value_or(0),
          .count = Sum(base + "_count", label, value).value_or(0)};
}

std::string MetricsPage::Label(std::string_view name, std::string_view label) const {
  std::string scratch;
  for (const PrometheusSample& sample : Samples(name)) {
    if (const auto value = sample.Label(label, scratch)) return Shown(*value, kLongestLabel);
  }
  return "";
}

}  // namespace fathom
