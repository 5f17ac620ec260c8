// The catalogue: trust, block sizes, and what engines say. See metrics/catalogue.h.
#pragma once

#include <array>
#include <string_view>

#include "metrics/metric_family.h"

namespace fathom {

inline constexpr std::string_view kTrustStateNames = "probing learning trusted doubted excluded";
inline constexpr std::string_view kTrustCauseNames =
    "block_size_mismatch prefix_caching_off no_events tokens_differ unsupported_groups event_gap "
    "event_lag prediction_drift churn block_size_conflict unhealthy";

inline constexpr auto kTrustFamilies = std::to_array<MetricFamily>({
    {.name = "kv_router_rank_trust",
     .type = MetricType::kGauge,
     .help = "1 for the state of trust that a rank is in",
     .action = "Every rank `trusted` is good. `learning` is a rank that has not published yet; "
               "under load that passes. `doubted` and `excluded` have a cause: the next metric.",
     .label_slots = {{{"worker"}, {"rank"}, {"state", kTrustStateNames}}},
     .page = "runbooks/no-trusted-rank.md"},
    {.name = "kv_router_rank_doubt",
     .type = MetricType::kGauge,
     .help = "1 while a rank is doubted or excluded, and why",
     .action = "No series is good. Each cause has an alert and a runbook.",
     .label_slots = {{{"worker"}, {"rank"}, {"cause", kTrustCauseNames}}},
     .page = "runbooks/README.md"},
    {.name = "kv_router_trust_changes_total",
     .type = MetricType::kCounter,
     .help = "Times that a rank came into a state of trust",
     .action = "Steady growth of `doubted`: a fault that comes and goes. `cause` is empty for "
               "states that need none.",
     .label_slots = {{{"state", kTrustStateNames}, {"cause", kTrustCauseNames}}},
     .page = "runbooks/trust-unsteady.md"},
});

inline constexpr auto kBlockSizeFamilies = std::to_array<MetricFamily>({
    {.name = "kv_router_block_size",
     .type = MetricType::kGauge,
     .help = "Tokens per KV cache block, and how that is known",
     .action = "All workers of a model have one value. It is found out; a router that was told one "
               "(`configured`) must have been told the engines' own.",
     .label_slots = {{{"worker"}, {"rank"}, {"source", "configured report events"}}},
     .page = "runbooks/block-size-mismatch.md"},
    {.name = "kv_router_block_size_mismatch_total",
     .type = MetricType::kCounter,
     .help = "Stored events, and workers that were refused, whose block size is not the one in use",
     .action = "Any growth: cache-aware routing is off for that worker. Leave "
               "`--kv-cache-block-size` out, or set what `reported` says.",
     .label_slots = {{{"worker"}, {"configured"}, {"reported"}}},
     .page = "runbooks/block-size-mismatch.md"},
});

inline constexpr auto kEngineFamilies = std::to_array<MetricFamily>({
    {.name = "kv_router_engine_running",
     .type = MetricType::kGauge,
     .help = "Requests that the engine says it runs",
     .action = "At the engine's limit for long: add workers.",
     .label_slots = {{{"worker"}, {"dp_rank"}}}},
    {.name = "kv_router_engine_waiting",
     .type = MetricType::kGauge,
     .help = "Requests that the engine says wait in it",
     .action = "Above 0 for long: the engine is overloaded. Lower `--router-queue-threshold`, and "
               "requests wait in the router, where they can still choose.",
     .label_slots = {{{"worker"}, {"dp_rank"}}}},
    {.name = "kv_router_engine_cache_usage",
     .type = MetricType::kGauge,
     .help = "Share of its KV cache that the engine says is in use, 0 to 1",
     .action = "Near 1 under load: prefixes are evicted, and requests preempted.",
     .label_slots = {{{"worker"}, {"dp_rank"}}},
     .page = "runbooks/memory-pressure.md"},
});

}  // namespace fathom
