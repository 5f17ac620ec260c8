// The catalogue: requests, workers, and the router itself. See metrics/catalogue.h.
#pragma once

#include <array>

#include "metrics/metric_family.h"

namespace fathom {

inline constexpr auto kRequestFamilies = std::to_array<MetricFamily>({
    {.name = "fathom_requests_total",
     .type = MetricType::kCounter,
     .help = "Requests by kind and by the status that answered them",
     .action =
         "The rate is the traffic, the share of 5xx is the error rate. `own` are the router's "
         "pages: 503 there means that `/ready` answered not ready; `worker_ready` are questions "
         "about one worker. Requests whose client disconnected are not counted.",
     .label_slots = {{{"route",
                       "chat completions embeddings responses messages count_tokens generate "
                       "inference_generate rerank score other worker_ready own"},
                      {"code"}}},
     .page = "runbooks/not-ready.md"},
    {.name = "fathom_time_to_first_token_seconds",
     .type = MetricType::kHistogram,
     .help = "Time from a request's first byte to the first byte of its answer's body",
     .action = "Cache-aware routing lowers this. High while few tokens are cached: look at "
               "`kv_router_wasted_prefill_tokens_total`. High while many are: look at "
               "`kv_router_queue_waiting` and `kv_router_rank_queued_prefill_tokens`; the fleet "
               "is too small.",
     .page = "runbooks/follow-ups-slow.md"},
    {.name = "fathom_inter_token_latency_seconds",
     .type = MetricType::kHistogram,
     .help = "Time between pieces of a streamed answer",
     .action = "High means that engines decode too many requests at once. Compare "
               "`kv_router_engine_running` of the workers; look for preemptions.",
     .page = "runbooks/preemptions.md"},
    {.name = "fathom_request_duration_seconds",
     .type = MetricType::kHistogram,
     .help = "Time from a request's first byte to the end of its answer",
     .action = "Depends mostly on the length of the answers. Look at the two above first."},
    {.name = "fathom_requests_in_flight",
     .type = MetricType::kGauge,
     .help = "Requests being served now",
     .action = "Near `--max-in-flight`, requests start to wait and are then refused."},
    {.name = "fathom_requests_rejected_total",
     .type = MetricType::kCounter,
     .help = "Requests refused before a worker was chosen",
     .action = "`full`: more than `--max-in-flight` inside and `--max-waiting` waiting; clients "
               "got 429. Add workers, or raise the limits if memory allows. `draining`: requests "
               "that arrived while the router was shutting down; remove it from its load "
               "balancer earlier.",
     .label_slots = {{{"reason", "full draining"}}}},
    {.name = "fathom_retries_total",
     .type = MetricType::kCounter,
     .help = "Requests sent to another worker after a first one failed",
     .action = "Clients did not notice these. A steady rate means a failing worker: "
               "`fathom_worker_errors_total` shows which.",
     .label_slots = {{{"reason", "connect broken timeout status busy aborted gone question"}}},
     .page = "runbooks/rank-excluded.md"},
    {.name = "fathom_retries_denied_total",
     .type = MetricType::kCounter,
     .help = "Retries not made because the retry budget was empty",
     .action = "Growth means that too many requests fail to retry all of them "
               "(`--retry-budget`): much of the fleet is down. Look at `fathom_worker_ready`."},
    {.name = "fathom_broken_answers_total",
     .type = MetricType::kCounter,
     .help = "Answers that ended after their first byte, before they were complete",
     .action = "Clients saw these: an error event, or a reset. Engines crash or are stopped "
               "without draining; `fathom_worker_errors_total{kind=\"broken_stream\"}` shows "
               "which."},
    {.name = "fathom_client_disconnects_total",
     .type = MetricType::kCounter,
     .help = "Requests whose client disconnected before the answer was complete",
     .action = "Normal for interactive users. A jump together with the time to first token means "
               "that clients reach their own timeouts."},
    {.name = "fathom_relay_bytes_total",
     .type = MetricType::kCounter,
     .help = "Body bytes relayed",
     .action = "For network planning only.",
     .label_slots = {{{"direction", "to_worker to_client"}}}},
});

inline constexpr auto kWorkerFamilies = std::to_array<MetricFamily>({
    {.name = "fathom_worker_info",
     .type = MetricType::kGauge,
     .help = "Always 1; the labels describe the worker, with one series per model that it serves",
     .action =
         "Join it to other metrics by `worker`, to show the engine or the URL in place of "
         "the id. `url` is empty, except on `--admin-listen` and with `--metrics-urls`. "
         "`model` and `engine` are empty until the worker has reported them. Adapters "
         "are listed up to 1000 series in all, workers and their base models up to 16384; one "
         "series `other` stands for further ones.",
     .label_slots = {{{"worker"}, {"url"}, {"model"}, {"engine"}}}},
    {.name = "fathom_worker_ready",
     .type = MetricType::kGauge,
     .help = "1 if requests can be routed to the worker",
     .action = "0 for minutes: the worker fails its health checks, or is refused. `GET /health` "
               "shows the cause.",
     .label_slots = {{{"worker"}}},
     .page = "runbooks/rank-excluded.md"},
    {.name = "fathom_workers_waiting",
     .type = MetricType::kGauge,
     .help = "Workers that are on their way into the fleet, by what they wait for",
     .action = "`interview`: their engine has not answered the first questions yet. `block_size`: "
               "their KV block size has to be agreed on. `replay`: the index is being filled from "
               "the events of their caches. For minutes: `GET /health` shows which, in "
               "`waits_for`.",
     .label_slots = {{{"for", "interview block_size replay"}}}},
    {.name = "fathom_source_up",
     .type = MetricType::kGauge,
     .help = "1 if a source of workers can be read and is valid",
     .action = "0: its workers stay, but changes are not seen. `GET /health` has the error. "
               "`source` is its URL on the admin listener or with `--metrics-urls`, else its kind "
               "and a number; beyond 256 the others are one series, `other`.",
     .label_slots = {{{"source"}}},
     .page = "runbooks/source-stale.md"},
    {.name = "fathom_source_workers",
     .type = MetricType::kGauge,
     .help = "Workers that a source names now",
     .action = "0 while the source is up: it names none. Check the selector, or the Service's "
               "endpoints.",
     .label_slots = {{{"source"}}},
     .page = "runbooks/source-stale.md"},
    {.name = "fathom_worker_in_flight",
     .type = MetricType::kGauge,
     .help = "Requests a worker is serving now",
     .action = "Uneven is normal: prompts go where their prefix is cached. One worker with all "
               "of them while others idle: look at sessions and at `kv_router_rank_slowness`.",
     .label_slots = {{{"worker"}}}},
    {.name = "fathom_worker_requests_total",
     .type = MetricType::kCounter,
     .help = "Requests sent to a worker",
     .action = "A rate of zero on a worker that is ready: it has no requested prefix cached and "
               "is no faster than others; or its circuit breaker is open.",
     .label_slots = {{{"worker"}}}},
    {.name = "fathom_worker_errors_total",
     .type = MetricType::kCounter,
     .help = "Errors of a worker's answers, by kind",
     .action = "`failed`: no answer, or a 5xx. `busy`: a 503, which is not an error. `aborted`: "
               "a draining engine aborted a request. `broken_stream`: the answer ended before it "
               "was complete, and the client saw it. The engine's own log has the reason.",
     .label_slots = {{{"worker"}, {"kind", "failed aborted busy broken_stream"}}},
     .page = "runbooks/rank-excluded.md"},
    {.name = "fathom_worker_circuit_open",
     .type = MetricType::kGauge,
     .help = "1 while the worker's circuit breaker is open",
     .action = "It failed `--circuit-breaker-failures` times in a row and gets one trial every "
               "`--circuit-breaker-open`. Fix the engine; the breaker then closes by itself.",
     .label_slots = {{{"worker"}}},
     .page = "runbooks/rank-excluded.md"},
});

inline constexpr auto kOwnFamilies = std::to_array<MetricFamily>({
    {.name = "fathom_build_info",
     .type = MetricType::kGauge,
     .help = "Always 1; the labels show what runs",
     .action = "Two versions at once for long: a rollout is stuck.",
     .label_slots = {{{"version"}, {"compiler"}}}},
    {.name = "fathom_log_dropped_total",
     .type = MetricType::kCounter,
     .help = "Log records that were dropped because the log was not read fast enough",
     .action = "Not 0: find out why the reader of standard error is slow or stopped. Warnings and "
               "errors are dropped last."},
    {.name = "fathom_metrics_label_overflow_total",
     .type = MetricType::kCounter,
     .help = "Label sets beyond the limit of their family, counted as \"other\"",
     .action = "Always 0. A family has at most 1000 label sets, one per worker or rank at most "
               "16384; growth is a bug in Fathom: please report it."},
});

}  // namespace fathom
