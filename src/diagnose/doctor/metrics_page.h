// What do the samples of one Prometheus page add up to?
//
//   const MetricsPage page(std::move(body));
//   page.Sum("vllm:num_preemptions_total");                 over all ranks
//   page.SumBy("kv_router_wasted_prefill_tokens_total", "cause");
//
// Memory  The page, and kMaxSamples views into it. What comes after them is passed over.
// Errors  None: what is not there, or no number, is nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/prometheus_text.h"

namespace fathom {

// What a histogram saw. Its mean is what many observations had on average.
struct Observations {
  double sum = 0;
  double count = 0;

  double Mean() const { return count > 0 ? sum / count : 0; }
  // Since an earlier look; all of it if the server has begun anew since.
  Observations Since(const Observations& earlier) const;
  bool operator==(const Observations&) const = default;
};

class MetricsPage {
 public:
  static constexpr size_t kMaxSamples = 200'000;
  static constexpr size_t kMaxLabels = 256;  // different ones in one answer
  using ByLabel = std::map<std::string, double>;

  explicit MetricsPage(std::string page);
  MetricsPage(const MetricsPage&) = delete;
  MetricsPage& operator=(const MetricsPage&) = delete;

  bool empty() const { return samples_.empty(); }
  std::span<const PrometheusSample> Samples(std::string_view name) const;
  // Is there a metric whose name begins so?
  bool HasPrefix(std::string_view prefix) const;

  std::optional<double> Sum(std::string_view name, std::string_view label = "",
                            std::string_view value = "") const;
  // The first of these names that the page has: names change with releases.
  std::optional<double> SumOfFirst(std::span<const std::string_view> names) const;
  std::optional<double> Largest(std::string_view name) const;
  ByLabel SumBy(std::string_view name, std::string_view label) const;
  // NAME_sum and NAME_count, over all labels; or only where a label has that value.
  Observations Histogram(std::string_view name, std::string_view label = "",
                         std::string_view value = "") const;
  // The first value of a label of that metric.
  std::string Label(std::string_view name, std::string_view label) const;

 private:
  const std::string page_;
  std::vector<PrometheusSample> samples_;  // by name
};

}  // namespace fathom
