#include "diagnose/doctor/waste_remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

namespace fathom {
namespace {

constexpr double kNoticeable = 0.1;  // of all waste

struct WasteEntry {
  std::string_view name;
  std::string_view what;
  std::string_view setting;
  std::string_view cost;
};

// clang-format off
constexpr auto kWasteEntries = std::to_array<WasteEntry>({
    {"doubted", "Fix the cause for which ranks are not trusted", "curl -s ROUTER/health | jq '.workers[].ranks[] | {trust, cause, fix}'", "depends on the cause"},
    {"excluded", "Bring back the workers that get no requests", "curl -s ROUTER/health | jq '.workers[] | {url, state, cause}'", "depends on the cause"},
    {"lag", "Find out what delays KV events between engine and router: the network, or a busy router", "fathom listen WORKER", "none"},
    {"mispredicted", "Find out why an engine does not find what its KV events reported: its release, its KV connector, lost removals", "fathom docs prediction-drift", "none"},
    {"prompts_unread", "Let the router read the prompts: it routed them without their prefix", "curl -s ROUTER/health | jq '.models[] | {model, cause, reason, fix}'", "a restart of the router; engines keep their caches"},
    {"evicted", "Give the KV cache more memory, or run fewer sequences at once", "fathom docs churn", "a restart of the engine, which empties its cache"},
    {"gone", "Restart fewer engines at a time, and look for crashes in their logs", "", "none"},
    {"forgotten", "Raise the memory limit of the router's index", "--index-max-bytes 8GiB", "a restart of the router, and its memory; engines keep their caches"},
    {"override", "Nothing to fix, if clients choose the rank on purpose (x-data-parallel-rank, sessions)", "", "none"},
    {"load", "Add workers: the prefix was on a rank that was busier than others", "", "more GPUs; a part of this waste makes answers faster"},
    {"full", "Add workers, or let each run more sequences at once", "fathom docs wasted-prefill", "more GPUs, or less memory for cached prefixes"},
});
// clang-format on

Fix FixFor(const WasteEntry& cause, double share) {
  return {
      .what = fmt::format("{} ({:.0f} % of the waste: {})", cause.what, 100 * share, cause.name),
      .setting = std::string(cause.setting),
      .diff = {},
      .cost = std::string(cause.cost),
      .verify = fmt::format(
          "kv_router_wasted_prefill_tokens_total{{cause=\"{}\"}} grows more slowly than "
          "kv_router_prompt_tokens_total",
          cause.name)};
}

}  // namespace

std::vector<Fix> WasteRemedies(const std::map<std::string, double>& tokens_by_cause) {
  double all = 0;
  std::vector<std::pair<double, const WasteEntry*>> causes;
  for (const auto& [name, tokens] : tokens_by_cause) {
    all += tokens;
    const auto known = std::ranges::find(kWasteEntries, name, &WasteEntry::name);
    if (known != kWasteEntries.end()) causes.emplace_back(tokens, &*known);
  }
  std::ranges::sort(causes, std::greater<>(), [](const auto& cause) { return cause.first; });
  std::vector<Fix> fixes;
  for (const auto& [tokens, cause] : causes) {
    if (tokens > 0 && tokens >= kNoticeable * all) fixes.push_back(FixFor(*cause, tokens / all));
  }
  if (fixes.empty()) {
    fixes.push_back({.what = "Look up the causes of the waste: each has its own fix",
                     .setting = "fathom docs wasted-prefill",
                     .diff = {},
                     .cost = "none",
                     .verify = "the share of wasted prompt tokens falls"});
  }
  return fixes;
}

}  // namespace fathom
