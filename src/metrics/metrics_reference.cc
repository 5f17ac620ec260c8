#include "metrics/metrics_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/renamed.h"
#include "metrics/catalogue.h"

namespace fathom {
namespace {

constexpr std::string_view kIntroduction = R"(# Metrics

This page is written by `./dev docs` from the catalogue in `src/metrics/`; change the catalogue, not the
page. `HELP` and `TYPE` on `/metrics` come from the same rows.

## How to scrape

`GET /metrics` on the router's port, in Prometheus' text format; with `--admin-listen` also on that address. It
requires no key, and contains no prompts, keys or names of clients.

```yaml
scrape_configs:
  - job_name: fathom
    dns_sd_configs:      # each router by itself: behind one address their counters would be mixed up
      - names: [fathom-admin.llm.svc]
        type: A
        port: 8001
```

[deploy/prometheus/fathom-alerts.yml](../deploy/prometheus/fathom-alerts.yml) has alerts, each with a
[runbook](runbooks/README.md); [deploy/grafana/fathom.json](../deploy/grafana/fathom.json) is a dashboard.

Nothing that a client sends becomes a label, and a family has at most 1000 label sets, or 16384 if it has
one per worker or rank; further ones are counted under `other`, and by [`fathom_metrics_label_overflow_total`](#fathom_metrics_label_overflow_total).
`worker` is a worker's id: `GET /workers` shows its URL, and so does
[`fathom_worker_info`](#fathom_worker_info) on the admin listener. `dp_rank` is the number of one of its
data-parallel ranks, 0 where there is only one. The series of a worker are removed together with it.

## If you watch only five

| metric | good is |
|---|---|
| [`kv_router_rank_trust`](#kv_router_rank_trust) | every rank in the state `trusted` |
| [`kv_router_cached_tokens_total`](#kv_router_cached_tokens_total) by [`kv_router_prompt_tokens_total`](#kv_router_prompt_tokens_total) | the same level as last week |
| [`kv_router_wasted_prefill_tokens_total`](#kv_router_wasted_prefill_tokens_total) | small relative to the prompt tokens, except for `load`, `full` and `override` |
| [`fathom_time_to_first_token_seconds`](#fathom_time_to_first_token_seconds) | within your service level objective |
| [`fathom_requests_total`](#fathom_requests_total) | no `code` of 500 or above |
)";

std::string LabelText(const MetricLabel& label) {
  std::string text = fmt::format("`{}`", label.name);
  if (label.values.empty()) return text;
  text += " (`";
  for (const char c : label.values) text += c == ' ' ? std::string("`, `") : std::string(1, c);
  return text + "`)";
}

std::string LabelsText(const MetricFamily& family) {
  if (family.labels().empty()) return "none";
  std::string text;
  for (const MetricLabel& label : family.labels()) {
    if (!text.empty()) text += "; ";
    text += LabelText(label);
  }
  return text;
}

// "runbooks/churn.md" is shown as churn.
std::string LinkTo(std::string_view page) {
  if (page.empty()) return {};
  std::string_view name = page.substr(page.rfind('/') + 1);
  name.remove_suffix(std::string_view(".md").size());
  return fmt::format(" Runbook: [{}]({}).", name == "README" ? "index" : name, page);
}

// Wraps the text; lines after the first are indented by `indent`.
std::string Lines(std::string_view text, std::string_view indent = "") {
  constexpr size_t kWidth = 112;
  std::string lines;
  size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const bool fits = lines.empty() || column + 1 + word.size() <= kWidth;
    if (!lines.empty()) lines.append(fits ? " " : "\n").append(fits ? "" : indent);
    column = (fits ? column + 1 : indent.size()) + word.size();
    lines += word;
  }
  return lines + "\n";
}

std::string Point(std::string_view text) { return Lines(fmt::format("* {}", text), "  "); }

std::string FormerNameText(const MetricFamily& family) {
  const auto& [name, release] = family.former;
  if (name.empty()) return {};
  return Point(
      fmt::format("Former name: `{}`, renamed in {}. Both are exposed until {} removes it.", name,
                  release, RemovedIn(release)));
}

std::string FamilyText(const MetricFamily& family) {
  return fmt::format("\n### {}\n\n{}\n", family.name, Lines(fmt::format("{}.", family.help))) +
         Point(fmt::format("Type: {}", Name(family.type))) +
         Point(fmt::format("Labels: {}", LabelsText(family))) +
         Point(fmt::format("What to do: {}{}", family.action, LinkTo(family.page))) +
         FormerNameText(family);
}

std::string AreaText(const MetricArea& area) {
  std::string text = fmt::format("\n## {}\n\n{}", area.title, Lines(area.introduction));
  for (const MetricFamily& family : area.families) text += FamilyText(family);
  return text;
}

}  // namespace

std::string MetricsReference() {
  std::string page(kIntroduction);
  for (const MetricArea& area : kMetricAreas) page += AreaText(area);
  return page;
}

}  // namespace fathom
