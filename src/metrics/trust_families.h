// The catalogue: trust, block sizes, and reports of engines. See metrics/catalogue.h.
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
     .action = "Good: every rank is `trusted`. `learning` is a rank that has not published yet; "
               "under load this state ends. `doubted` and `excluded` have a cause: the next "
               "metric.",
     .label_slots = {{{"worker"}, {"dp_rank"}, {"state", kTrustStateNames}}},
     .page = "runbooks/no-trusted-rank.md"},
    {.name = "kv_router_rank_doubt",
     .type = MetricType::kGauge,
     .help = "1 while a rank is doubted or excluded, with the cause",
     .action = "Good: no series. Each cause has an alert and a runbook.",
     .label_slots = {{{"worker"}, {"dp_rank"}, {"cause", kTrustCauseNames}}},
     .page = "runbooks/README.md"},
    {.name = "kv_router_trust_changes_total",
     .type = MetricType::kCounter,
     .help = "Times that a rank entered a state of trust",
     .action = "Steady growth of `doubted`: an intermittent fault. `cause` is empty for states "
               "that need none.",
     .label_slots = {{{"state", kTrustStateNames}, {"cause", kTrustCauseNames}}},
     .page = "runbooks/trust-unsteady.md"},
});

inline constexpr auto kBlockSizeFamilies = std::to_array<MetricFamily>({
    {.name = "kv_router_block_size",
     .type = MetricType::kGauge,
     .help = "Tokens per KV cache block, by source",
     .action = "All workers of a model have one value. It is detected; a value that was set on "
               "the router (`configured`) must match the backend's.",
     .label_slots = {{{"worker"}, {"dp_rank"}, {"source", "configured report events"}}},
     .page = "runbooks/block-size-mismatch.md"},
    {.name = "kv_router_block_size_mismatch_total",
     .type = MetricType::kCounter,
     .help =
         "Stored events, and workers that were refused, whose block size is not the one in use; 0 "
         "from the start for each rank whose size is configured or known",
     .action = "Any growth: cache-aware routing is off for that worker. Unset "
               "`--kv-cache-block-size`, or set it to the value of `reported`.",
     .label_slots = {{{"worker"}, {"configured"}, {"reported"}}},
     .page = "runbooks/block-size-mismatch.md"},
});

inline constexpr auto kEngineFamilies = std::to_array<MetricFamily>({
    {.name = "kv_router_engine_running",
     .type = MetricType::kGauge,
     .help = "Running requests, as the engine reports",
     .action = "At the engine's limit for a long time: add workers.",
     .label_slots = {{{"worker"}, {"dp_rank"}}}},
    {.name = "kv_router_engine_waiting",
     .type = MetricType::kGauge,
     .help = "Waiting requests, as the engine reports",
     .action = "Above 0 for a long time: the engine is overloaded. Lower "
               "`--router-queue-threshold`, so that requests wait in the router, where they can "
               "still go to any rank.",
     .label_slots = {{{"worker"}, {"dp_rank"}}}},
    {.name = "kv_router_engine_cache_usage",
     .type = MetricType::kGauge,
     .help = "Share of the KV cache in use, 0 to 1, as the engine reports",
     .action = "Near 1 under load: prefixes are evicted, and requests preempted.",
     .label_slots = {{{"worker"}, {"dp_rank"}}},
     .page = "runbooks/memory-pressure.md"},
});

}  // namespace fathom
