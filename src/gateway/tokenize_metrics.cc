#include "gateway/tokenize_metrics.h"

#include <string>

namespace fathom {
namespace {

constexpr std::array<std::string_view, kTokensFrom> kFromNames = {"ids",    "cache",   "tokenizer",
                                                                  "engine", "partial", "none"};
constexpr std::array<std::string_view, kTokenFailures> kFailureNames = {
    "timeout", "refused", "unsupported", "error", "overload"};

constexpr std::array kLocalDurations = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                        0.005,   0.01,   0.025,   0.05,   0.1,   0.25};
constexpr std::array kDurations = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                   0.05,   0.1,     0.25,   0.5,   1.0,    2.5,   5.0,  10.0};

}  // namespace

std::string_view Name(TokensFrom from) { return kFromNames[static_cast<size_t>(from)]; }
std::string_view Name(TokenFailure failure) { return kFailureNames[static_cast<size_t>(failure)]; }

TokenizeMetrics::TokenizeMetrics(Registry& registry)
    : duration(registry.AddHistogram("kv_router_tokenize_seconds",
                                     "Time that an engine took to tokenize a prompt", kDurations)),
      local_duration(registry.AddHistogram(
          "kv_router_local_tokenize_seconds",
          "Time from a prompt's text to its tokens, with the model's own files", kLocalDurations)),
      cache_bytes(registry.AddGauge("kv_router_token_cache_bytes",
                                    "Memory that the tokens of earlier prompts hold")),
      prefix_bytes(registry.AddGauge("kv_router_prefix_cache_bytes",
                                     "Memory that the keys of earlier prompts hold")) {
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
  for (size_t i = 0; i < kInexact; ++i) {
    inexact_[i] = &registry.AddCounter(
        "kv_router_inexact_prompts_total",
        "Prompts whose tokens the model's own files give only in part, or not at all",
        {{"reason", std::string(Name(static_cast<Inexact>(i)))}});
  }
}

}  // namespace fathom
