#include "gateway/gateway_metrics.h"

#include <string>

#include "base/version.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, kRoutes> kRouteNames = {
    "chat", "completions", "embeddings", "responses", "other", "own"};
constexpr std::array<std::string_view, kRetryReasons> kReasonNames = {
    "connect", "broken", "timeout", "status", "busy", "aborted", "gone", "question"};

constexpr std::string_view kDecisions = "kv_router_decisions_total";
constexpr std::string_view kDecisionsHelp =
    "Choices, by what the chosen rank had of the prompt: confirmed by KV events, only believed to "
    "be "
    "there, or nothing; or the tokens were not known, or requests of that kind have no prompt";
constexpr std::string_view kErrors = "kv_router_prediction_error_tokens";
constexpr std::string_view kErrorsHelp =
    "By how many tokens what was predicted to be cached was over or under what was found";
constexpr std::array kTokenCounts = {1.0,    16.0,    64.0,    256.0,   1024.0,
                                     4096.0, 16384.0, 65536.0, 262144.0};
constexpr std::string_view kStages = "kv_router_decision_stage_seconds";
constexpr std::string_view kStagesHelp = "Time that a choice spends in each of its stages";

constexpr std::array kShort = {1e-6, 2.5e-6, 5e-6, 1e-5,  2.5e-5, 5e-5,
                               1e-4, 2.5e-4, 5e-4, 0.001, 0.005,  0.05};
constexpr std::array kFirstToken = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,  0.25,
                                    0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0, 300.0};
constexpr std::array kBetweenTokens = {0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03,
                                       0.05,  0.075,  0.1,   0.2,  0.5,   1.0,  5.0};
constexpr std::array kDurations = {0.005, 0.01, 0.025, 0.05, 0.1,  0.25,  0.5,   1.0,
                                   2.5,   5.0,  10.0,  30.0, 60.0, 120.0, 300.0, 1800.0};

}  // namespace

std::string_view Name(Route route) { return kRouteNames[static_cast<size_t>(route)]; }
std::string_view Name(RetryReason reason) { return kReasonNames[static_cast<size_t>(reason)]; }

GatewayMetrics::GatewayMetrics(Registry& registry)
    : time_to_first_token(registry.AddHistogram(
          "fathom_time_to_first_token_seconds",
          "Time from a request's first byte to the first byte of its answer's body", kFirstToken)),
      inter_token_latency(registry.AddHistogram("fathom_inter_token_latency_seconds",
                                                "Time between pieces of a streamed answer",
                                                kBetweenTokens)),
      duration(registry.AddHistogram("fathom_request_duration_seconds",
                                     "Time from a request's first byte to the end of its answer",
                                     kDurations)),
      in_flight(registry.AddGauge("fathom_requests_in_flight", "Requests being served now")),
      bytes_from_clients(registry.AddCounter("fathom_relay_bytes_total", "Body bytes relayed",
                                             {{"direction", "to_worker"}})),
      bytes_to_clients(registry.AddCounter("fathom_relay_bytes_total", "Body bytes relayed",
                                           {{"direction", "to_client"}})),
      rejected_full(registry.AddCounter("fathom_requests_rejected_total",
                                        "Requests refused before a worker was chosen",
                                        {{"reason", "full"}})),
      rejected_draining(registry.AddCounter("fathom_requests_rejected_total",
                                            "Requests refused before a worker was chosen",
                                            {{"reason", "draining"}})),
      client_left(registry.AddCounter("fathom_client_disconnects_total",
                                      "Requests whose client left before the answer was complete")),
      broken_answers(registry.AddCounter("fathom_broken_answers_total",
                                         "Answers that broke off after their first byte")),
      retries_denied(registry.AddCounter("fathom_retries_denied_total",
                                         "Retries not made because the retry budget was empty")),
      without_prompt(registry.AddCounter(kDecisions, kDecisionsHelp, {{"by", "no_prompt"}})),
      forwarded_as_tokens(registry.AddCounter(
          "kv_router_forwarded_as_tokens_total",
          "Requests that went to their worker with token ids in place of text")),
      not_literal(registry.AddCounter(
          "kv_router_user_text_not_literal_total",
          "Chats that went to their worker as text in spite of --literal-user-text")),
      queued(registry.AddCounter("kv_router_queued_total",
                                 "Requests that waited in the router for a rank with room")),
      queue_timeouts(registry.AddCounter(
          "kv_router_queue_timeouts_total",
          "Requests that waited too long for a rank with room and went to the best one anyway")),
      queue_wait(registry.AddHistogram("kv_router_queue_wait_seconds",
                                       "Time that requests waited for a rank with room",
                                       kDurations)),
      usage_asked(registry.AddCounter(
          "kv_router_usage_asked_total",
          "Streams whose engine the router asked for the usage, to take it out again")),
      usage_seen(registry.AddCounter("kv_router_usage_seen_total",
                                     "Answers that said how many tokens their prompt had")),
      registry_(registry),
      by_cache_(registry.AddCounter(kDecisions, kDecisionsHelp, {{"by", "cache"}})),
      by_belief_(registry.AddCounter(kDecisions, kDecisionsHelp, {{"by", "belief"}})),
      by_load_(registry.AddCounter(kDecisions, kDecisionsHelp, {{"by", "load"}})),
      without_tokens_(registry.AddCounter(kDecisions, kDecisionsHelp, {{"by", "no_tokens"}})),
      prompt_tokens_(registry.AddCounter("kv_router_prompt_tokens_total",
                                         "Tokens of the prompts that were routed")),
      cached_tokens_(
          registry.AddCounter("kv_router_cached_tokens_total",
                              "Of these, cached on the chosen rank, as KV events had confirmed")),
      predicted_(registry.AddCounter(
          "kv_router_predicted_cached_tokens_total",
          "Tokens that KV events said were cached, of requests whose engine told what it found")),
      actual_(registry.AddCounter("kv_router_actual_cached_tokens_total",
                                  "Tokens that the engines found cached, of the same requests")),
      over_(registry.AddHistogram(kErrors, kErrorsHelp, kTokenCounts, {{"direction", "over"}})),
      under_(registry.AddHistogram(kErrors, kErrorsHelp, kTokenCounts, {{"direction", "under"}})),
      hashing_(registry.AddHistogram(kStages, kStagesHelp, kShort, {{"stage", "hash"}})),
      lookup_(registry.AddHistogram(kStages, kStagesHelp, kShort, {{"stage", "lookup"}})),
      choosing_(registry.AddHistogram(kStages, kStagesHelp, kShort, {{"stage", "choose"}})) {
  for (size_t i = 0; i < kWasteCauses; ++i) {
    wasted_[i] = &registry.AddCounter(
        "kv_router_wasted_prefill_tokens_total",
        "Prompt tokens that were prefilled though their prefix was known somewhere, by why",
        {{"cause", std::string(Name(static_cast<WasteCause>(i)))}});
  }
  for (size_t i = 0; i < kRetryReasons; ++i) {
    retries_[i] = &registry.AddCounter("fathom_retries_total",
                                       "Requests sent to another worker after a first one failed",
                                       {{"reason", std::string(kReasonNames[i])}});
  }
  registry
      .AddGauge("fathom_build_info", "Always 1; the labels say what runs",
                {{"version", std::string(kVersion)}, {"compiler", kCompiler}})
      .Set(1);
}

void GatewayMetrics::CountRequest(Route route, int status) {
  const size_t code = status >= 0 && static_cast<size_t>(status) < kStatuses ? status : 0;
  std::atomic<Counter*>& slot = requests_[static_cast<size_t>(route)][code];
  Counter* counter = slot.load(std::memory_order_acquire);  // pairs with the store below
  if (counter == nullptr) {
    counter = &registry_.AddCounter(
        "fathom_requests_total", "Requests by kind and by the status that answered them",
        {{"route", std::string(Name(route))}, {"code", std::to_string(code)}});
    slot.store(counter, std::memory_order_release);
  }
  counter->Add();
}

void GatewayMetrics::Count(const Decision& decision, const Steering::Stages& stages, bool first) {
  Counter& by = !decision.tokens_known         ? without_tokens_
                : decision.cached_tokens() > 0 ? by_cache_
                : decision.rank().believed > 0 ? by_belief_
                                               : by_load_;
  by.Add();
  if (first && decision.tokens_known) {
    prompt_tokens_.Add(decision.prompt.tokens);
    cached_tokens_.Add(decision.cached_tokens());
  }
  hashing_.Observe(stages.hash);
  lookup_.Observe(stages.lookup);
  choosing_.Observe(stages.choose);
}

void GatewayMetrics::CountOutcome(uint32_t predicted, std::optional<uint32_t> found,
                                  const Waste& waste) {
  for (size_t i = 0; i < kWasteCauses; ++i) {
    if (waste.tokens[i] > 0) wasted_[i]->Add(waste.tokens[i]);
  }
  if (!found) return;
  predicted_.Add(predicted);
  actual_.Add(*found);
  // Histograms count time; a token is a second.
  const bool over = predicted > *found;
  (over ? over_ : under_)
      .Observe(std::chrono::seconds(over ? predicted - *found : *found - predicted));
}

void CollectRoutingMetrics(const FleetSnapshot& fleet, SteeringWorld& steering, size_t waiting,
                           TimePoint now, Exposition& out) {
  const double unit = steering.speed.unit();
  steering.sent.ExpireAll(now);
  out.AddGauge("kv_router_queue_waiting", "Requests that wait in the router for a rank with room",
               {}, static_cast<double>(waiting));
  out.AddGauge("kv_router_sent_marks", "Marks of prompts that were sent somewhere just now", {},
               static_cast<double>(steering.sent.marks()));
  out.AddCounter("kv_router_sent_prompts_forgotten_total",
                 "Prompts that were sent but not remembered, because too many were", {},
                 static_cast<double>(steering.sent.forgotten()));
  out.AddGauge("kv_router_prefill_seconds_per_token",
               "How long the prefill of a token takes, as learned from first tokens", {},
               unit / 1e9);
  for (const Member& member : fleet.members()) {
    const Worker& worker = *member.worker;
    worker.ranks.ForEach([&](Rank& rank) {
      const RankLoad::View load = rank.load.Look(now, unit);
      const Labels labels = {{"worker", worker.id_text()},
                             {"dp_rank", std::to_string(rank.number)}};
      out.AddGauge("kv_router_rank_requests", "Requests on a rank that were routed by prompt",
                   labels, load.requests);
      out.AddGauge("kv_router_rank_queued_prefill_tokens",
                   "Prefill work of requests without a first token, in tokens", labels,
                   load.queued);
      out.AddGauge("kv_router_rank_context_tokens",
                   "Tokens that the requests on a rank keep in its cache", labels,
                   static_cast<double>(load.context));
      out.AddGauge("kv_router_rank_slowness", "How many times slower than the fleet a rank is",
                   labels, rank.speed.SlownessBeside(steering.speed));
    });
  }
}

void CollectWorkerMetrics(const FleetSnapshot& fleet, Exposition& out) {
  for (const Member& member : fleet.members()) {
    const Worker& worker = *member.worker;
    const Labels labels = {{"worker", worker.id_text()}};
    const auto kind = [&](const char* value) {
      return Labels{{"worker", worker.id_text()}, {"kind", value}};
    };
    out.AddGauge("fathom_worker_in_flight", "Requests a worker is serving now", labels,
                 worker.in_flight.load(std::memory_order_relaxed));
    out.AddGauge("fathom_worker_ready", "1 if requests can be routed to the worker", labels,
                 member.state == WorkerState::kReady ? 1 : 0);
    out.AddGauge("fathom_worker_circuit_open", "1 while the worker's circuit breaker is open",
                 labels, worker.breaker.open() ? 1 : 0);
    out.AddCounter("fathom_worker_requests_total", "Requests sent to a worker", labels,
                   static_cast<double>(worker.requests.Value()));
    constexpr std::string_view kWrong = "fathom_worker_errors_total";
    constexpr std::string_view kWrongHelp = "What went wrong with a worker's answers";
    out.AddCounter(kWrong, kWrongHelp, kind("failed"),
                   static_cast<double>(worker.failures.Value()));
    out.AddCounter(kWrong, kWrongHelp, kind("aborted"),
                   static_cast<double>(worker.aborted.Value()));
    out.AddCounter(kWrong, kWrongHelp, kind("busy"), static_cast<double>(worker.busy.Value()));
    out.AddCounter(kWrong, kWrongHelp, kind("broken_stream"),
                   static_cast<double>(worker.broken_streams.Value()));
  }
}

}  // namespace fathom
