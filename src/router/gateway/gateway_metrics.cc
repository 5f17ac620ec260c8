#include "router/gateway/gateway_metrics.h"

#include <algorithm>
#include <string>

#include "base/version.h"
#include "metrics/catalogue.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, kRoutes> kRouteNames = {
    "chat",     "completions",        "embeddings", "responses", "messages", "count_tokens",
    "generate", "inference_generate", "rerank",     "score",     "other",    "worker_ready",
    "own"};
constexpr std::array<std::string_view, kRetryReasons> kRetryReasonNames = {
    "connect", "broken", "timeout", "status", "busy", "aborted", "gone", "question"};

constexpr std::array<std::string_view, kHintResults> kHintResultNames = {"decided", "agreed",
                                                                         "outweighed", "unknown"};

constexpr const MetricFamily& kRelayed = Metric("fathom_relay_bytes_total");
constexpr const MetricFamily& kRejected = Metric("fathom_requests_rejected_total");
constexpr const MetricFamily& kDecisions = Metric("kv_router_decisions_total");
constexpr const MetricFamily& kReplayWaits = Metric("kv_router_replay_waits_total");
constexpr const MetricFamily& kErrors = Metric("kv_router_prediction_error_tokens");
constexpr const MetricFamily& kStages = Metric("kv_router_decision_stage_seconds");

constexpr const MetricFamily& kInfo = Metric("fathom_worker_info");

constexpr std::array kTokenCounts = {1.0,    16.0,    64.0,    256.0,   1024.0,
                                     4096.0, 16384.0, 65536.0, 262144.0};
constexpr std::array kShort = {1e-6, 2.5e-6, 5e-6, 1e-5,  2.5e-5, 5e-5,
                               1e-4, 2.5e-4, 5e-4, 0.001, 0.005,  0.05};
constexpr std::array kFirstToken = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,  0.25,
                                    0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0, 300.0};
constexpr std::array kBetweenTokens = {0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03,
                                       0.05,  0.075,  0.1,   0.2,  0.5,   1.0,  5.0};
constexpr std::array kDurations = {0.005, 0.01, 0.025, 0.05, 0.1,  0.25,  0.5,   1.0,
                                   2.5,   5.0,  10.0,  30.0, 60.0, 120.0, 300.0, 1800.0};

// The series of fathom_worker_info, up to the limit of a family.
class WorkerInfoSeries {
 public:
  WorkerInfoSeries(bool with_urls, Exposition& out) : with_urls_(with_urls), out_(out) {}

  // `most` series, of which the last one stands for all further ones.
  void Add(const Worker& worker, const std::string& model, size_t most) {
    if (full_) return;
    full_ = ++count_ >= most;
    const std::string other = "other";
    if (full_) return Write(other, "", other, other);
    const auto report = worker.report.Current();
    Write(worker.id_text(), with_urls_ ? worker.spec().url : "", model,
          report == nullptr ? "" : std::string(Name(report->engine)));
  }

 private:
  void Write(const std::string& worker, const std::string& url, const std::string& model,
             const std::string& engine) {
    out_.Add(kInfo, {{"worker", worker}, {"url", url}, {"model", model}, {"engine", engine}}, 1);
  }

  const bool with_urls_;
  Exposition& out_;
  size_t count_ = 0;
  bool full_ = false;
};

bool IsAdapterOf(const Member& member, const std::string& model) {
  return std::ranges::binary_search(member.adapters, model);
}

}  // namespace

std::string_view Name(Route route) { return kRouteNames[static_cast<size_t>(route)]; }
bool HasPrompt(Route route) {
  switch (route) {
    case Route::kChat:
    case Route::kCompletions:
    case Route::kMessages:
    case Route::kResponses:
    case Route::kGenerate:
    case Route::kInferenceGenerate:
      return true;
    case Route::kEmbeddings:
    case Route::kCountTokens:
    case Route::kRerank:
    case Route::kScore:
    case Route::kOther:
    case Route::kWorkerReady:
    case Route::kOwn:
      break;
  }
  return false;
}

std::string_view Name(RetryReason reason) { return kRetryReasonNames[static_cast<size_t>(reason)]; }

GatewayMetrics::GatewayMetrics(Registry& registry)
    : time_to_first_token(
          registry.AddHistogram(Metric("fathom_time_to_first_token_seconds"), kFirstToken)),
      inter_token_latency(
          registry.AddHistogram(Metric("fathom_inter_token_latency_seconds"), kBetweenTokens)),
      duration(registry.AddHistogram(Metric("fathom_request_duration_seconds"), kDurations)),
      in_flight(registry.AddGauge(Metric("fathom_requests_in_flight"))),
      bytes_from_clients(registry.AddCounter(kRelayed, {{"direction", "to_worker"}})),
      bytes_to_clients(registry.AddCounter(kRelayed, {{"direction", "to_client"}})),
      rejected_full(registry.AddCounter(kRejected, {{"reason", "full"}})),
      rejected_draining(registry.AddCounter(kRejected, {{"reason", "draining"}})),
      client_left(registry.AddCounter(Metric("fathom_client_disconnects_total"))),
      broken_answers(registry.AddCounter(Metric("fathom_broken_answers_total"))),
      retries_denied(registry.AddCounter(Metric("fathom_retries_denied_total"))),
      forwarded_as_tokens(registry.AddCounter(Metric("kv_router_forwarded_as_tokens_total"))),
      not_literal(registry.AddCounter(Metric("kv_router_user_text_not_literal_total"))),
      queued(registry.AddCounter(Metric("kv_router_queued_total"))),
      queue_timeouts(registry.AddCounter(Metric("kv_router_queue_timeouts_total"))),
      queue_wait(registry.AddHistogram(Metric("kv_router_queue_wait_seconds"), kDurations)),
      replays_awaited(registry.AddCounter(kReplayWaits, {{"ended", "caught_up"}})),
      replays_missed(registry.AddCounter(kReplayWaits, {{"ended", "timeout"}})),
      usage_asked(registry.AddCounter(Metric("kv_router_usage_asked_total"))),
      usage_seen(registry.AddCounter(Metric("kv_router_usage_seen_total"))),
      registry_(registry),
      by_cache_(registry.AddCounter(kDecisions, {{"by", "cache"}})),
      by_belief_(registry.AddCounter(kDecisions, {{"by", "belief"}})),
      by_text_(registry.AddCounter(kDecisions, {{"by", "text"}})),
      by_load_(registry.AddCounter(kDecisions, {{"by", "load"}})),
      without_tokens_(registry.AddCounter(kDecisions, {{"by", "no_tokens"}})),
      by_no_prompt_(registry.AddCounter(kDecisions, {{"by", "no_prompt"}})),
      prompt_tokens_(registry.AddCounter(Metric("kv_router_prompt_tokens_total"))),
      cached_tokens_(registry.AddCounter(Metric("kv_router_cached_tokens_total"))),
      text_assumed_(registry.AddCounter(Metric("kv_router_text_assumed_tokens_total"))),
      text_found_(registry.AddCounter(Metric("kv_router_text_found_tokens_total"))),
      predicted_(registry.AddCounter(Metric("kv_router_predicted_cached_tokens_total"))),
      actual_(registry.AddCounter(Metric("kv_router_actual_cached_tokens_total"))),
      over_(registry.AddHistogram(kErrors, kTokenCounts, {{"direction", "over"}})),
      under_(registry.AddHistogram(kErrors, kTokenCounts, {{"direction", "under"}})),
      hashing_(registry.AddHistogram(kStages, kShort, {{"stage", "hash"}})),
      lookup_(registry.AddHistogram(kStages, kShort, {{"stage", "lookup"}})),
      choosing_(registry.AddHistogram(kStages, kShort, {{"stage", "choose"}})) {
  for (size_t i = 0; i < kWasteCauses; ++i) {
    wasted_[i] = &registry.AddCounter(Metric("kv_router_wasted_prefill_tokens_total"),
                                      {{"cause", std::string(Name(static_cast<WasteCause>(i)))}});
  }
  for (size_t i = 0; i < kSearchResults; ++i) {
    const auto kind = static_cast<SearchResult::Kind>(i);
    searches_[i] = &registry.AddCounter(Metric("kv_router_response_searches_total"),
                                        {{"result", std::string(Name(kind))}});
  }
  for (size_t i = 0; i < kRoutes; ++i) {
    const auto route = static_cast<Route>(i);
    if (HasPrompt(route) || route == Route::kWorkerReady || route == Route::kOwn) continue;
    without_prompt_[i] = &registry.AddCounter(Metric("kv_router_without_prompt_total"),
                                              {{"route", std::string(Name(route))}});
  }
  for (size_t kind = 0; kind < kHintKinds; ++kind) {
    std::string name(Name(static_cast<HintKind>(kind)));
    std::ranges::replace(name, '-', '_');
    std::ranges::replace(name, '.', '_');
    for (size_t result = 0; result < kHintResults; ++result) {
      hints_[kind][result] =
          &registry.AddCounter(Metric("kv_router_session_hints_total"),
                               {{"kind", name}, {"result", std::string(kHintResultNames[result])}});
    }
  }
  for (size_t i = 0; i < kRetryReasons; ++i) {
    retries_[i] = &registry.AddCounter(Metric("fathom_retries_total"),
                                       {{"reason", std::string(kRetryReasonNames[i])}});
  }
  registry
      .AddGauge(Metric("fathom_build_info"),
                {{"version", std::string(kVersion)}, {"compiler", kCompiler}})
      .Set(1);
}

void GatewayMetrics::CountRequest(Route route, int status) {
  const size_t code = status >= 0 && static_cast<size_t>(status) < kStatuses ? status : 0;
  std::atomic<Counter*>& slot = requests_[static_cast<size_t>(route)][code];
  Counter* counter = slot.load(std::memory_order_acquire);  // pairs with the store below
  if (counter == nullptr) {
    counter = &registry_.AddCounter(
        Metric("fathom_requests_total"),
        {{"route", std::string(Name(route))}, {"code", std::to_string(code)}});
    slot.store(counter, std::memory_order_release);
  }
  counter->Add();
}

void GatewayMetrics::Count(const Decision& decision, const Steering::Stages& stages, bool first) {
  Counter& by = !decision.tokens_known         ? without_tokens_
                : decision.cached_tokens() > 0 ? by_cache_
                : decision.rank().believed > 0 ? (decision.by_text ? by_text_ : by_belief_)
                                               : by_load_;
  by.Add();
  if (first && decision.tokens_known && !decision.by_text) {
    prompt_tokens_.Add(decision.prompt.tokens);
    cached_tokens_.Add(decision.cached_tokens());
  }
  hashing_.Observe(stages.hash);
  lookup_.Observe(stages.lookup);
  choosing_.Observe(stages.choose);
}

void GatewayMetrics::CountWaste(const Waste& waste) {
  for (size_t i = 0; i < kWasteCauses; ++i) {
    if (waste.tokens[i] > 0) wasted_[i]->Add(waste.tokens[i]);
  }
}

void GatewayMetrics::CountBlind(uint64_t prompt_tokens, const Waste& waste) {
  prompt_tokens_.Add(prompt_tokens);
  CountWaste(waste);
}

void GatewayMetrics::CountOutcome(uint32_t predicted, std::optional<uint32_t> found,
                                  const Waste& waste) {
  CountWaste(waste);
  if (!found) return;
  predicted_.Add(predicted);
  actual_.Add(*found);
  // Histograms hold durations, so one token is recorded as one second.
  const bool over = predicted > *found;
  (over ? over_ : under_)
      .Observe(std::chrono::seconds(over ? predicted - *found : *found - predicted));
}

void CollectRoutingMetrics(const FleetSnapshot& fleet, SteeringWorld& steering, size_t waiting,
                           TimePoint now, Exposition& out) {
  const double unit = steering.speed.unit();
  steering.sent.ExpireAll(now);
  out.Add(Metric("kv_router_queue_waiting"), {}, static_cast<double>(waiting));
  out.Add(Metric("kv_router_sent_marks"), {}, static_cast<double>(steering.sent.marks()));
  out.Add(Metric("kv_router_sent_prompts_forgotten_total"), {},
          static_cast<double>(steering.sent.forgotten()));
  out.Add(Metric("kv_router_prefill_seconds_per_token"), {}, unit / 1e9);
  if (steering.texts) {
    steering.texts->Expire(now);
    out.Add(Metric("kv_router_text_index_bytes"), {},
            static_cast<double>(steering.texts->index().memory().bytes()));
  }
  for (const Member& member : fleet.members()) {
    const Worker& worker = *member.worker;
    worker.ranks.ForEach([&](Rank& rank) {
      rank.load.Look(now, unit);  // ends silent prefills that are over
      // This router's own, so that the replicas' numbers can be added up.
      const RankLoad::Placed load = rank.load.placed();
      const Labels labels = {{"worker", worker.id_text()},
                             {"dp_rank", std::to_string(rank.number)}};
      out.Add(Metric("kv_router_rank_requests"), labels, load.requests);
      out.Add(Metric("kv_router_rank_queued_prefill_tokens"), labels, load.queued);
      out.Add(Metric("kv_router_rank_context_tokens"), labels, static_cast<double>(load.context));
      out.Add(Metric("kv_router_rank_slowness"), labels, rank.SlownessAt(now));
      if (steering.texts) {
        out.Add(Metric("kv_router_rank_text_credit"), labels, rank.text.credit());
      }
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
    out.Add(Metric("fathom_worker_in_flight"), labels,
            worker.in_flight.load(std::memory_order_relaxed));
    out.Add(Metric("fathom_worker_ready"), labels, member.state == WorkerState::kReady ? 1 : 0);
    out.Add(Metric("fathom_worker_circuit_open"), labels, worker.breaker.open() ? 1 : 0);
    out.Add(Metric("fathom_worker_requests_total"), labels,
            static_cast<double>(worker.requests.Value()));
    constexpr const MetricFamily& kWrong = Metric("fathom_worker_errors_total");
    out.Add(kWrong, kind("failed"), static_cast<double>(worker.failures.Value()));
    out.Add(kWrong, kind("aborted"), static_cast<double>(worker.aborted.Value()));
    out.Add(kWrong, kind("busy"), static_cast<double>(worker.busy.Value()));
    out.Add(kWrong, kind("broken_stream"), static_cast<double>(worker.broken_streams.Value()));
  }
}

void CollectWorkerInfo(const FleetSnapshot& fleet, bool with_urls, Exposition& out) {
  WorkerInfoSeries series(with_urls, out);
  for (const bool adapters : {false, true}) {
    const size_t most = adapters ? Registry::kMaxLabelSets : Registry::kMaxWorkerLabelSets;
    for (const Member& member : fleet.members()) {
      if (member.models.empty() && !adapters) series.Add(*member.worker, "", most);
      for (const std::string& model : member.models) {
        if (IsAdapterOf(member, model) == adapters) series.Add(*member.worker, model, most);
      }
    }
  }
}

}  // namespace fathom
