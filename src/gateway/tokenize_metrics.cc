#include "gateway/tokenize_metrics.h"

#include <string>

namespace fathom {
namespace {

constexpr std::array<std::string_view, kTokensFrom> kFromNames = {"ids", "cache", "engine",
                                                                  "partial", "none"};
constexpr std::array<std::string_view, kTokenFailures> kFailureNames = {
    "timeout", "refused", "unsupported", "error", "overload"};

constexpr std::array kDurations = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                   0.05,   0.1,     0.25,   0.5,   1.0,    2.5,   5.0,  10.0};

}  // namespace

std::string_view Name(TokensFrom from) { return kFromNames[static_cast<size_t>(from)]; }
std::string_view Name(TokenFailure failure) { return kFailureNames[static_cast<size_t>(failure)]; }

TokenizeMetrics::TokenizeMetrics(Registry& registry)
    : duration(registry.AddHistogram("kv_router_tokenize_seconds",
                                     "Time that an engine took to tokenize a prompt", kDurations)),
      cache_bytes(registry.AddGauge("kv_router_token_cache_bytes",
                                    "Memory that the tokens of earlier prompts hold")) {
  for (size_t i = 0; i < kTokensFrom; ++i) {
    from_[i] = &registry.AddCounter("kv_router_tokenized_total",
                                    "Completion requests by where their tokens came from",
                                    {{"source", std::string(kFromNames[i])}});
  }
  for (size_t i = 0; i < kTokenFailures; ++i) {
    failures_[i] = &registry.AddCounter("kv_router_tokenize_failures_total",
                                        "Completion requests whose tokens could not be had in time",
                                        {{"reason", std::string(kFailureNames[i])}});
  }
}

}  // namespace fathom
