#include "router/gateway/tokenize_metrics.h"

#include <algorithm>
#include <string>

#include "metrics/catalogue.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, kTokensFrom> kFromNames = {
    "ids", "engine", "files", "engine", "files", "engine", "text", "none"};
// The counter tells more than decisions do, except where the beginning came from.
constexpr std::array<std::string_view, kTokensFrom> kCountedAs = {
    "ids", "cache", "tokenizer", "engine", "partial", "partial", "text", "none"};
constexpr std::array<std::string_view, kTokenFailures> kFailureNames = {
    "timeout", "refused", "unsupported", "error", "overload"};

constexpr std::array kLocalDurations = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                        0.005,   0.01,   0.025,   0.05,   0.1,   0.25};
constexpr std::array kTokenizeDurations = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                           0.01,   0.025,   0.05,   0.1,   0.25,   0.5,
                                           1.0,    2.5,     5.0,    10.0};

}  // namespace

std::string_view Name(TokensFrom from) { return kFromNames[static_cast<size_t>(from)]; }
std::string_view Name(TokenFailure failure) { return kFailureNames[static_cast<size_t>(failure)]; }

TokenizeMetrics::TokenizeMetrics(Registry& registry)
    : duration(registry.AddHistogram(Metric("kv_router_tokenize_seconds"), kTokenizeDurations)),
      local_duration(
          registry.AddHistogram(Metric("kv_router_local_tokenize_seconds"), kLocalDurations)),
      cache_bytes(registry.AddGauge(Metric("kv_router_token_cache_bytes"))),
      prefix_bytes(registry.AddGauge(Metric("kv_router_prefix_cache_bytes"))) {
  for (size_t i = 0; i < kTokensFrom; ++i) {
    const size_t same =
        static_cast<size_t>(std::ranges::find(kCountedAs, kCountedAs[i]) - kCountedAs.begin());
    from_[i] = same < i ? from_[same]
                        : &registry.AddCounter(Metric("kv_router_tokenized_total"),
                                               {{"source", std::string(kCountedAs[i])}});
  }
  for (size_t i = 0; i < kTokenFailures; ++i) {
    failures_[i] = &registry.AddCounter(Metric("kv_router_tokenize_failures_total"),
                                        {{"reason", std::string(kFailureNames[i])}});
  }
  for (size_t i = 0; i < kInexact; ++i) {
    inexact_[i] = &registry.AddCounter(Metric("kv_router_inexact_prompts_total"),
                                       {{"reason", std::string(Name(static_cast<Inexact>(i)))}});
  }
}

}  // namespace fathom
