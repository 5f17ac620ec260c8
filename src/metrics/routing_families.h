// The catalogue: choices, the queue, and tokens. See metrics/catalogue.h.
#pragma once

#include <array>

#include "metrics/metric_family.h"

namespace fathom {

inline constexpr auto kRoutingFamilies = std::to_array<MetricFamily>({
    {.name = "kv_router_decisions_total",
     .type = MetricType::kCounter,
     .help = "Choices, by what the chosen rank had cached of the prompt: confirmed by KV events, "
             "only assumed, or nothing; or the tokens were unknown, and its text was compared, or "
             "not; or requests of that kind have no prompt",
     .action = "`cache` at 0 under conversations: cache-aware routing does not work; "
               "`kv_router_rank_trust` shows which rank and why. Much `no_tokens`: see Tokens. "
               "`load` is right for prompts that no rank has cached.",
     .label_slots = {{{"by", "cache belief text load no_tokens no_prompt"}}},
     .page = "runbooks/no-trusted-rank.md"},
    {.name = "kv_router_without_prompt_total",
     .type = MetricType::kCounter,
     .help = "Requests of kinds that have no prompt whose prefix is worth a cache, routed by load",
     .action =
         "No action: these are not unread prompts. `other` are audio, images, `/tokenize` and "
         "the paths of `--pass-routes`.",
     .label_slots = {{{"route", "embeddings count_tokens rerank score other"}}}},
    {.name = "kv_router_session_hints_total",
     .type = MetricType::kCounter,
     .help = "Choices for requests with a session hint, by what became of the hint",
     .action = "`decided`: the rank of the session's last request was as good as the best one, or "
               "its events were late. `outweighed`: another rank had more of the prompt cached, or "
               "less load. `unknown`: the first request of a session, or its rank is gone.",
     .label_slots = {{{"kind",
                       "x_claude_code_session_id thread_id x_dynamo_session_id prompt_cache_key "
                       "metadata_user_id safety_identifier user"},
                      {"result", "decided agreed outweighed unknown"}}}},
    {.name = "kv_router_prompt_tokens_total",
     .type = MetricType::kCounter,
     .help =
         "Tokens of the prompts that were routed. Prompts whose tokens are not known count when "
         "they are answered, with the number that their engine reports",
     .action = "The denominator of every share on this page."},
    {.name = "kv_router_cached_tokens_total",
     .type = MetricType::kCounter,
     .help = "Of the tokens of routed prompts, those cached on the chosen rank, as KV events had "
             "confirmed",
     .action = "Divided by `kv_router_prompt_tokens_total` it is the share of prefill that was "
               "saved. The normal level depends on the traffic; act on a fall below it, and look "
               "at `kv_router_wasted_prefill_tokens_total` next.",
     .page = "runbooks/wasted-prefill.md"},
    {.name = "kv_router_wasted_prefill_tokens_total",
     .type = MetricType::kCounter,
     .help = "Prompt tokens that were prefilled although their prefix had been cached somewhere, "
             "by cause",
     .action = "Each cause has its fix. `load`, `full` and `override` are often right; investigate "
               "any other cause that stays above 5 % of the prompt tokens. `prompts_unread` is "
               "estimated from the text of prompts.",
     .label_slots =
         {{{"cause",
            "mispredicted load full override doubted excluded lag gone forgotten evicted "
            "prompts_unread"}}},
     .page = "runbooks/wasted-prefill.md"},
    {.name = "kv_router_predicted_cached_tokens_total",
     .type = MetricType::kCounter,
     .help = "Cached tokens predicted from KV events, of requests whose engine reported its "
             "cached tokens",
     .action = "Compare with the next. The two rates are equal when events and engines agree.",
     .page = "runbooks/prediction-drift.md"},
    {.name = "kv_router_actual_cached_tokens_total",
     .type = MetricType::kCounter,
     .help = "Cached tokens that engines reported, of requests whose engine reported its cached "
             "tokens",
     .action = "Less than predicted: engines evict blocks without an event, or events are late. "
               "More: events are missing. 0 on all: the engines do not report it; see "
               "`kv_router_usage_seen_total`.",
     .page = "runbooks/prediction-drift.md"},
    {.name = "kv_router_prediction_error_tokens",
     .type = MetricType::kHistogram,
     .help = "Tokens by which the predicted cached tokens were over or under those that engines "
             "reported",
     .action = "Nearly all within one block is good. A long tail of `over` means prefill that "
               "routing did not account for.",
     .label_slots = {{{"direction", "over under"}}},
     .page = "runbooks/prediction-drift.md"},
    {.name = "kv_router_usage_asked_total",
     .type = MetricType::kCounter,
     .help = "Streams in which the router asked the engine for the usage, and removed it again",
     .action = "Nothing. `--no-ask-usage` turns the question off."},
    {.name = "kv_router_usage_seen_total",
     .type = MetricType::kCounter,
     .help = "Answers that reported how many tokens their prompt had",
     .action = "Far below the answers: predictions cannot be checked. vLLM reports it with "
               "`--enable-prompt-tokens-details`, SGLang with `--enable-cache-report`.",
     .page = "runbooks/prediction-drift.md"},
    {.name = "kv_router_response_pins",
     .type = MetricType::kGauge,
     .help = "Responses of `/v1/responses` whose worker the router remembers",
     .action = "Nothing. Requests that continue one of them go to that worker."},
    {.name = "kv_router_response_searches_total",
     .type = MetricType::kCounter,
     .help = "Requests about a response whose worker the router did not remember, by what asking "
             "the workers gave",
     .action = "`found` after a restart, or with several routers, is normal. Much `nowhere`: "
               "clients continue responses whose worker is gone, or whose engine does not store "
               "them. `unanswered` and `overload` are answered with 503: see "
               "`response_not_located`.",
     .label_slots = {{{"result", "found nowhere anyone unanswered overload"}}},
     .page = "troubleshooting.md"},
    {.name = "kv_router_decision_stage_seconds",
     .type = MetricType::kHistogram,
     .help = "Time that a choice spends in each of its stages",
     .action = "Microseconds. Milliseconds mean a machine without free cores.",
     .label_slots = {{{"stage", "hash lookup choose"}}}},
    {.name = "kv_router_prefill_seconds_per_token",
     .type = MetricType::kGauge,
     .help = "How long the prefill of a token takes, as learned from first tokens",
     .action = "Multiplied by the wasted tokens, it is the cost of the waste. A rise means that "
               "engines got slower."},
    {.name = "kv_router_rank_requests",
     .type = MetricType::kGauge,
     .help = "Requests on a rank that were routed by prompt",
     .action = "The router's own count. Far from `kv_router_engine_running`: other clients also "
               "send to that engine.",
     .label_slots = {{{"worker"}, {"dp_rank"}}}},
    {.name = "kv_router_rank_queued_prefill_tokens",
     .type = MetricType::kGauge,
     .help = "Prefill work of requests without a first token, in tokens",
     .action = "High on every rank: the fleet is too small. High on one: it is slow, or its "
               "prefix is very popular.",
     .label_slots = {{{"worker"}, {"dp_rank"}}}},
    {.name = "kv_router_rank_context_tokens",
     .type = MetricType::kGauge,
     .help = "Tokens that the requests on a rank keep in its cache",
     .action = "Near the engine's cache in tokens (`kv_tokens` in `/health`): it will preempt.",
     .label_slots = {{{"worker"}, {"dp_rank"}}},
     .page = "runbooks/memory-pressure.md"},
    {.name = "kv_router_rank_slowness",
     .type = MetricType::kGauge,
     .help = "How many times slower than the fleet a rank is",
     .action = "About 1. Above 2 for long: another GPU model, a throttled GPU, or another "
               "program on it. The router sends it fewer requests by itself. It is forgotten with "
               "the engine's process, and fades within three minutes without requests, so that "
               "the rank is tried again.",
     .label_slots = {{{"worker"}, {"dp_rank"}}}},
    {.name = "kv_router_rank_text_credit",
     .type = MetricType::kGauge,
     .help = "Share of the prefixes assumed by text that a rank had cached of late; 0 below a "
             "quarter, and then they do not count",
     .action = "About 1. 0: the engine evicts prefixes before they are used again, or does not "
               "cache them; or its prompts have other texts than the router sees. 1 for an engine "
               "that does not report cached tokens.",
     .label_slots = {{{"worker"}, {"dp_rank"}}}},
    {.name = "kv_router_text_assumed_tokens_total",
     .type = MetricType::kCounter,
     .help =
         "Of prompts that were routed by their text: tokens that the chosen rank was assumed to "
         "have cached, where the engine reported its cached tokens",
     .action = "Compare with the next: the two rates should be close."},
    {.name = "kv_router_text_found_tokens_total",
     .type = MetricType::kCounter,
     .help = "Of the same prompts: cached tokens that their engines reported",
     .action = "Far less than assumed: engines evict prefixes early. `--model-path` gives the "
               "router tokens, so that KV events show what is cached."},
    {.name = "kv_router_text_index_bytes",
     .type = MetricType::kGauge,
     .help = "Memory that the texts of sent prompts hold",
     .action = "At most 128 MiB; then the oldest are forgotten."},
    {.name = "kv_router_forwarded_as_tokens_total",
     .type = MetricType::kCounter,
     .help = "Requests that went to their worker with token ids in place of text",
     .action = "Nothing. 0 with `--forward-tokens`: the router does not know the tokens; see "
               "Tokens."},
    {.name = "kv_router_user_text_not_literal_total",
     .type = MetricType::kCounter,
     .help = "Chats that went to their worker as text despite --literal-user-text",
     .action = "In each of these chats, special tokens written by a user may have taken effect. "
               "`kv_router_inexact_prompts_total` shows why the router did not know the tokens."},
    {.name = "kv_router_sent_marks",
     .type = MetricType::kGauge,
     .help = "Marks of prompts that were sent to a rank recently",
     .action = "At most 4 million; below that there is nothing to do."},
    {.name = "kv_router_sent_prompts_forgotten_total",
     .type = MetricType::kCounter,
     .help = "Prompts that were sent but not recorded, because the table was full",
     .action = "Growth: equal prompts that arrive at the same time may be spread over ranks "
               "until their events arrive. Run more routers, each with fewer requests."},
});

inline constexpr auto kQueueFamilies = std::to_array<MetricFamily>({
    {.name = "kv_router_queue_waiting",
     .type = MetricType::kGauge,
     .help = "Requests that wait in the router for a rank with free capacity",
     .action = "Above 0 for minutes: the fleet is too small, or `--router-queue-threshold` too "
               "low. Waiting in the router is better than in an engine: a waiting request can "
               "still go to any rank."},
    {.name = "kv_router_queued_total",
     .type = MetricType::kCounter,
     .help = "Requests that waited in the router for a rank with free capacity",
     .action = "As a share of all requests it shows how often the fleet is full."},
    {.name = "kv_router_queue_timeouts_total",
     .type = MetricType::kCounter,
     .help = "Requests that waited too long for a rank with free capacity and went to the best "
             "one anyway",
     .action = "Each waited for `--router-queue-timeout`. Add workers."},
    {.name = "kv_router_queue_wait_seconds",
     .type = MetricType::kHistogram,
     .help = "Time that requests waited for a rank with free capacity",
     .action = "It is part of the time to first token. Seconds mean that the fleet is too small."},
    {.name = "kv_router_replay_waits_total",
     .type = MetricType::kCounter,
     .help = "Requests that waited because a worker that had just joined replayed its KV events",
     .action = "Some after a start. `timeout`: the replay took longer than "
               "`--kv-events-replay-wait`, and "
               "the request was routed without it.",
     .label_slots = {{{"ended", "caught_up timeout"}}}},
});

inline constexpr auto kTokenFamilies = std::to_array<MetricFamily>({
    {.name = "kv_router_tokenized_total",
     .type = MetricType::kCounter,
     .help = "Completion requests by where their tokens came from",
     .action = "`none` is routed by load. Much `engine`: give the router the model's files "
               "(`--model-path`), so that it tokenizes prompts itself.",
     .label_slots = {{{"source", "ids cache tokenizer engine partial text none"}}}},
    {.name = "kv_router_tokenize_failures_total",
     .type = MetricType::kCounter,
     .help = "Completion requests whose tokens were not available in time",
     .action = "`timeout`: engines take longer than `--tokenize-timeout`. `refused`: the request "
               "is invalid. `unsupported`: no engine of that model tokenizes; use "
               "`--model-path`. `error`: engines that answer with invalid data, or are gone. "
               "`overload`: too many at once.",
     .label_slots = {{{"reason", "timeout refused unsupported error overload"}}}},
    {.name = "kv_router_parity_probes_total",
     .type = MetricType::kCounter,
     .help = "Probe prompts whose tokens were compared with an engine's when it was admitted",
     .action = "`differs`: the cause `tokens_differ`, before any request; see `GET /health`. "
               "`unsupported`: the engine has no endpoint for it, its events are the check.",
     .label_slots = {{{"result", "agrees differs inconclusive unanswered unsupported"}}}},
    {.name = "kv_router_prompts_unread_total",
     .type = MetricType::kCounter,
     .help = "Answered requests that were routed without any token of their prompt, by load alone",
     .action =
         "A share above a tenth of a model's prompts makes `/health` degraded: caches are not "
         "used for them. `/health` has the reason and the fix of each model.",
     .label_slots = {{{"route", "chat completions responses messages generate inference_generate"},
                      {"reason",
                       "no_tokenizer template timeout error overload too_long media continued "
                       "truncated"}}},
     .page = "runbooks/prompts-unread.md"},
    {.name = "kv_router_unread_models",
     .type = MetricType::kGauge,
     .help = "Models of which more than a tenth of the last 50 prompts were routed without any "
             "token",
     .action = "0. Else `/health` is degraded and has the reason and the fix of each model.",
     .page = "runbooks/prompts-unread.md"},
    {.name = "kv_router_inexact_prompts_total",
     .type = MetricType::kCounter,
     .help = "Prompts whose tokens the model's own files give only in part, or not at all",
     .action = "`image`, `audio`, `video`, `file` and `unknown_part` are known up to that part. "
               "`no_template` and `template_failed`: the files do not match the model. "
               "`too_late`: raise `--tokenize-threads`.",
     .label_slots = {{{"reason",
                       "image audio video file unknown_part own_template no_template "
                       "template_refused template_failed not_a_prompt too_long too_late overload "
                       "truncated"}}},
     .page = "runbooks/tokens-differ.md"},
    {.name = "kv_router_tokenize_seconds",
     .type = MetricType::kHistogram,
     .help = "Time that an engine took to tokenize a prompt",
     .action = "It is part of the time to first token, once for each new text. Above 10 ms: use "
               "`--model-path`."},
    {.name = "kv_router_local_tokenize_seconds",
     .type = MetricType::kHistogram,
     .help = "Time from a prompt's text to its tokens, with the model's own files",
     .action = "Below a millisecond for follow-ups. Long new texts take longer, in threads of "
               "their own (`--tokenize-threads`)."},
    {.name = "kv_router_token_cache_bytes",
     .type = MetricType::kGauge,
     .help = "Memory that the tokens of earlier prompts hold",
     .action = "A full cache is normal. If follow-ups are tokenized from the beginning, raise "
               "`--tokenize-cache-bytes`."},
    {.name = "kv_router_prefix_cache_bytes",
     .type = MetricType::kGauge,
     .help = "Memory that the keys of earlier prompts hold",
     .action = "A quarter of `--tokenize-cache-bytes` at most."},
});

}  // namespace fathom
