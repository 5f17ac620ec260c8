#include "diagnose/doctor/router_look.h"

#include <algorithm>

#include "base/text.h"
#include "diagnose/doctor/page_members.h"

namespace fathom {
namespace {

constexpr std::string_view kAdminKeyOption = "--admin-key";
constexpr size_t kMaxModels = 256;
constexpr size_t kMaxMismatches = 256;
constexpr size_t kMaxDecisions = 1000;

RoutedRank ReadRank(const Json& rank) {
  return {.rank = SmallCountOf(rank, "rank"),
          .trust = TextOf(rank, "trust"),
          .cause = TextOf(rank, "cause"),
          .since = TextOf(rank, "since"),
          .evidence = TextOf(rank, "evidence"),
          .fix = TextOf(rank, "fix"),
          .events = TextOf(rank, "events"),
          .cost_tokens = CountOf(rank, "cost_tokens"),
          .credit = NumberOf(MemberOf(rank, "credit"), "plain").value_or(0),
          .blocks = CountOf(rank, "blocks"),
          .last_event_age = NumberOf(rank, "last_event_age_seconds"),
          .feed = std::nullopt};
}

void ReadCapacity(const Json& from, RoutedWorker& worker) {
  worker.kv_tokens = CountOf(from, "kv_tokens");
  worker.kv_blocks = CountOf(from, "kv_blocks");
  worker.context_length = CountOf(from, "context_length");
  worker.max_running = CountOf(from, "max_running");
  worker.batch_tokens = CountOf(from, "batch_tokens");
  worker.prefix_caching = FlagOf(from, "prefix_caching");
  const Json& load = MemberOf(from, "load");
  worker.running = CountOf(load, "running");
  worker.waiting = CountOf(load, "waiting");
  worker.cache_usage = NumberOf(load, "cache_usage");
}

RoutedWorker ReadWorker(const Json& from) {
  RoutedWorker worker;
  worker.id = CountOf(from, "id");
  worker.url = TextOf(from, "url");
  for (const Json& model : ListOf(from, "models")) {
    if (worker.models.size() == kMaxModels) break;
    if (model.string() != nullptr) worker.models.push_back(Shown(*model.string()));
  }
  worker.state = TextOf(from, "state");
  worker.cause = TextOf(from, "cause");
  worker.circuit = TextOf(from, "circuit");
  worker.engine = TextOf(from, "engine");
  worker.block_size = SmallCountOf(from, "block_size");
  worker.block_size_source = TextOf(from, "block_size_source");
  ReadCapacity(from, worker);
  worker.in_flight = CountOf(from, "in_flight");
  worker.requests = CountOf(from, "requests");
  for (const Json& rank : ListOf(from, "ranks")) {
    if (worker.ranks.size() == RouterLook::kMaxRanks) break;
    worker.ranks.push_back(ReadRank(rank));
  }
  return worker;
}

RoutedModel ReadModel(const Json& from) {
  return {.model = TextOf(from, "model"),
          .status = TextOf(from, "status"),
          .cause = TextOf(from, "cause"),
          .share = NumberOf(from, "share").value_or(0),
          .reason = TextOf(from, "reason"),
          .route = TextOf(from, "route"),
          .engine = TextOf(from, "engine"),
          .cost_tokens = CountOf(from, "cost_tokens"),
          .fix = TextOf(from, "fix")};
}

RoutedReplica ReadReplica(const Json& json) {
  RoutedReplica replica{.id = TextOf(json, "id"),
                        .self = FlagOf(json, "self").value_or(false),
                        .hears_us = FlagOf(json, "hears_us").value_or(true),
                        .age = NumberOf(json, "age_seconds").value_or(0),
                        .unheard = NumberOf(json, "unheard_seconds").value_or(0),
                        .workers = CountOf(json, "workers"),
                        .worker_set = TextOf(json, "worker_set"),
                        .models = {}};
  for (const Json& pattern : ListOf(json, "models")) {
    if (pattern.string() != nullptr) replica.models.push_back(Shown(*pattern.string(), 1000));
  }
  return replica;
}

ReplicaCarrierLook ReadCarrier(const Json& health) {
  const Json* const json = health.Find("replica_carrier");
  if (json == nullptr || json->Find("status") == nullptr) return {};
  return {.known = true,
          .kind = TextOf(*json, "kind"),
          .group = TextOf(*json, "group"),
          .status = TextOf(*json, "status"),
          .error = TextOf(*json, "error"),
          .conflicts = CountOf(*json, "id_conflicts")};
}

RoutedSource ReadSource(const Json& from) {
  return {.source = TextOf(from, "source"),
          .status = TextOf(from, "status"),
          .error = TextOf(from, "error"),
          .unknown = TextOf(from, "unknown"),
          .workers = CountOf(from, "workers")};
}

FollowedFeed ReadFeed(const Json& from) {
  return {.source = TextOf(from, "source"),
          .connected = FlagOf(from, "connected").value_or(false),
          .reach = TextOf(from, "reach"),
          .batches = CountOf(from, "batches"),
          .stored_blocks = CountOf(from, "stored_blocks"),
          .removed_blocks = CountOf(from, "removed_blocks"),
          .clears = CountOf(from, "clears"),
          .gaps = CountOf(from, "gaps"),
          .lost_batches = CountOf(from, "lost_batches"),
          .malformed = CountOf(from, "malformed_batches") + CountOf(from, "malformed_events"),
          .mismatched_events = CountOf(from, "mismatched_events"),
          .restarts = CountOf(from, "restarts"),
          .parked_blocks = CountOf(from, "parked_blocks"),
          .adopted_blocks = CountOf(from, "adopted_blocks"),
          .unknown_removed = CountOf(from, "unknown_removed"),
          .unsupported_groups = CountOf(from, "unsupported_groups"),
          .blocks = CountOf(from, "blocks"),
          .block_size = SmallCountOf(from, "block_size")};
}

void ReadReady(const Result<FetchAnswer>& answer, RouterLook& look) {
  if (!answer) return;
  look.ready = answer->status == 200;
  if (look.ready) return;
  const auto page = Json::ParseWithLargeNumbers(answer->body);
  if (page) look.not_ready_because = TextOf(*page, "reason");
}

// What needs the admin key, and may be served on a port of its own.
void SayWhatIsHidden(const Result<FetchAnswer>& index, RouterLook& look) {
  const bool refused = index && (index->status == 401 || index->status == 403);
  if (look.workers_total == 0 || !look.workers.empty()) return;
  look.wants_admin_key = refused;
  look.problem =
      refused ? "the router shows its workers only with its admin key; give it with --admin-key"
              : "the router does not show its workers here; its admin pages are on another port "
                "(--admin-listen), or need --admin-key";
}

uint32_t NumberLabel(const PrometheusSample& sample, std::string_view name) {
  std::string scratch;
  const auto text = sample.Label(name, scratch);
  const auto number = text ? ParseDecimal(*text) : std::nullopt;
  return number && *number <= UINT32_MAX ? static_cast<uint32_t>(*number) : 0;
}

std::vector<SizeMismatch> ReadMismatches(const MetricsPage& page) {
  std::vector<SizeMismatch> mismatches;
  std::string scratch;
  for (const PrometheusSample& sample : page.Samples("kv_router_block_size_mismatch_total")) {
    if (mismatches.size() == kMaxMismatches) break;
    if (!(sample.value() > 0)) continue;  // every known rank has one that stands at 0
    mismatches.push_back({.worker = Shown(sample.Label("worker", scratch).value_or("")),
                          .configured = NumberLabel(sample, "configured"),
                          .reported = NumberLabel(sample, "reported"),
                          .events = sample.value()});
  }
  return mismatches;
}

// Older routers call this cause "wish".
void RenameFormerCauses(MetricsPage::ByLabel& wasted) {
  const auto former = wasted.find("wish");
  if (former == wasted.end()) return;
  wasted["override"] += former->second;
  wasted.erase(former);
}

MetricsPage::ByLabel CountsSince(MetricsPage::ByLabel now, const MetricsPage::ByLabel& earlier) {
  for (auto& [label, value] : now) {
    const auto before = earlier.find(label);
    if (before != earlier.end()) value = std::max(0.0, value - before->second);
  }
  return now;
}

void AddDecision(const Json& decision, RecentDecisions& sum) {
  const uint64_t prompt = CountOf(decision, "prompt_tokens");
  const uint64_t cached = CountOf(decision, "cached_tokens");
  if (sum.looked_at == 0) {
    sum.tree_size = CountOf(decision, "tree_size");
    sum.mode = TextOf(decision, "mode");
  }
  ++sum.looked_at;
  sum.prompt_tokens += prompt;
  sum.cached_tokens += cached;
  if (cached > 0) ++sum.with_cached;
  if (TextOf(decision, "depths_from").starts_with("nothing")) ++sum.tokens_unknown;
  if (const auto found = MemberOf(decision, "found_tokens").unsigned_integer()) {
    sum.found_tokens += *found;
    sum.found_prompt_tokens += prompt;
  }
  sum.oldest = std::max(sum.oldest, NumberOf(decision, "age_seconds").value_or(0));
}

}  // namespace

RouterCounters RouterCounters::Since(const RouterCounters& earlier) const {
  if (requests < earlier.requests || prompt_tokens < earlier.prompt_tokens) return *this;
  RouterCounters since = *this;
  since.prompt_tokens -= earlier.prompt_tokens;
  since.cached_tokens -= earlier.cached_tokens;
  since.predicted_tokens -= earlier.predicted_tokens;
  since.actual_tokens -= earlier.actual_tokens;
  since.requests -= earlier.requests;
  since.wasted = CountsSince(wasted, earlier.wasted);
  since.decisions = CountsSince(decisions, earlier.decisions);
  since.tokenize_failures = CountsSince(tokenize_failures, earlier.tokenize_failures);
  since.unread = CountsSince(unread, earlier.unread);
  since.first_token = first_token.Since(earlier.first_token);
  since.event_lag = event_lag.Since(earlier.event_lag);
  for (SizeMismatch& mismatch : since.mismatches) {
    for (const SizeMismatch& before : earlier.mismatches) {
      const bool same = before.worker == mismatch.worker &&
                        before.configured == mismatch.configured &&
                        before.reported == mismatch.reported;
      if (same) mismatch.events = std::max(0.0, mismatch.events - before.events);
    }
  }
  return since;
}

bool ReadRouterHealth(std::string_view page, RouterLook& look) {
  const auto json = Json::ParseWithLargeNumbers(page);
  if (!json || json->Find("workers_total") == nullptr || json->Find("version") == nullptr) {
    return false;
  }
  look.status = TextOf(*json, "status");
  look.version = TextOf(*json, "version");
  look.mode = TextOf(*json, "router_mode");
  if (const Json* follows = json->Find("router_kv_events");
      follows != nullptr && follows->boolean() != nullptr) {
    look.kv_events = *follows->boolean();
  }
  look.draining = FlagOf(*json, "draining").value_or(false);
  look.in_flight = CountOf(*json, "requests_in_flight");
  look.waiting = CountOf(*json, "requests_waiting");
  look.workers_ready = CountOf(*json, "workers_ready");
  look.workers_total = CountOf(*json, "workers_total");
  for (const Json& worker : ListOf(*json, "workers")) {
    if (look.workers.size() == RouterLook::kMaxWorkers) break;
    look.workers.push_back(ReadWorker(worker));
  }
  for (const Json& model : ListOf(*json, "models")) {
    if (look.models.size() == RouterLook::kMaxModels) break;
    look.models.push_back(ReadModel(model));
  }
  for (const Json& source : ListOf(*json, "sources")) {
    if (look.sources.size() == RouterLook::kMaxSources) break;
    look.sources.push_back(ReadSource(source));
  }
  for (const Json& replica : ListOf(*json, "replicas")) {
    if (look.replicas.size() == RouterLook::kMaxReplicas) break;
    look.replicas.push_back(ReadReplica(replica));
  }
  look.carrier = ReadCarrier(*json);
  return true;
}

void ReadRouterIndex(std::string_view page, RouterLook& look) {
  const auto json = Json::ParseWithLargeNumbers(page);
  if (!json) return;
  for (const Json& feed : ListOf(*json, "ranks")) {
    const auto worker = std::ranges::find(look.workers, CountOf(feed, "worker"), &RoutedWorker::id);
    if (worker == look.workers.end()) continue;
    const uint32_t number = SmallCountOf(feed, "rank");
    auto rank = std::ranges::find(worker->ranks, number, &RoutedRank::rank);
    // Releases before trust did not show ranks in /health.
    if (rank == worker->ranks.end()) {
      if (worker->ranks.size() == RouterLook::kMaxRanks) continue;
      rank = worker->ranks.insert(rank, RoutedRank{.rank = number});
    }
    rank->feed = ReadFeed(feed);
  }
}

RouterCounters ReadRouterMetrics(const MetricsPage& page) {
  RouterCounters counters;
  counters.known = page.HasPrefix("kv_router_") || page.HasPrefix("fathom_");
  counters.prompt_tokens = page.Sum("kv_router_prompt_tokens_total").value_or(0);
  counters.cached_tokens = page.Sum("kv_router_cached_tokens_total").value_or(0);
  counters.predicted_tokens = page.Sum("kv_router_predicted_cached_tokens_total").value_or(0);
  counters.actual_tokens = page.Sum("kv_router_actual_cached_tokens_total").value_or(0);
  counters.wasted = page.SumBy("kv_router_wasted_prefill_tokens_total", "cause");
  RenameFormerCauses(counters.wasted);
  counters.decisions = page.SumBy("kv_router_decisions_total", "by");
  counters.tokenize_failures = page.SumBy("kv_router_tokenize_failures_total", "reason");
  counters.unread = page.SumBy("kv_router_prompts_unread_total", "reason");
  counters.mismatches = ReadMismatches(page);
  counters.first_token = page.Histogram("fathom_time_to_first_token_seconds");
  counters.event_lag = page.Histogram("kv_router_event_lag_seconds", "from", "timestamp");
  counters.requests = page.Sum("fathom_requests_total").value_or(0);
  counters.index_bytes = page.Sum("kv_router_index_bytes").value_or(0);
  counters.index_max_bytes = page.Sum("kv_router_index_max_bytes").value_or(0);
  return counters;
}

RecentDecisions ReadRouterDecisions(std::string_view page) {
  RecentDecisions sum;
  const auto json = Json::ParseWithLargeNumbers(page);
  if (!json) return sum;
  for (const Json& decision : ListOf(*json, "decisions")) {
    if (sum.looked_at == kMaxDecisions) break;
    AddDecision(decision, sum);
  }
  return sum;
}

Task<RouterLook> LookAtRouter(ReadOnlyClient& client) {
  RouterLook look;
  look.url = client.url();
  auto asking_health = client.Get("/health");
  const auto health = co_await asking_health;
  // A fleet that is down answers 503, with the same page.
  if (!health || (health->status != 200 && health->status != 503)) {
    look.problem = WhyNot(health, kAdminKeyOption);
    co_return std::move(look);
  }
  look.reached = ReadRouterHealth(health->body, look);
  if (!look.reached) {
    look.problem = "it answers /health, but is not Fathom";
    co_return std::move(look);
  }
  auto asking_ready = client.Get("/ready");
  const auto ready = co_await asking_ready;
  ReadReady(ready, look);
  auto asking_metrics = client.Get("/metrics");
  auto metrics = co_await asking_metrics;
  if (metrics && metrics->status == 200) {
    look.counters = ReadRouterMetrics(MetricsPage(std::move(metrics->body)));
  }
  auto asking_index = client.Get("/debug/index");
  const auto index = co_await asking_index;
  if (index && index->status == 200) ReadRouterIndex(index->body, look);
  auto asking_decisions = client.Get("/debug/decisions?limit=100");
  const auto decisions = co_await asking_decisions;
  if (decisions && decisions->status == 200) look.decisions = ReadRouterDecisions(decisions->body);
  SayWhatIsHidden(index, look);
  co_return std::move(look);
}

}  // namespace fathom
