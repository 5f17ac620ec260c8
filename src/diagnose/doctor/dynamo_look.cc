#include "diagnose/doctor/dynamo_look.h"

#include <algorithm>

#include "diagnose/doctor/page_members.h"

namespace fathom {
namespace {

constexpr std::string_view kDynamoKeyOption = "--api-key";

std::string InstanceId(const Json& instance) {
  const Json& id = MemberOf(instance, "instance_id");
  if (const auto number = id.unsigned_integer()) return std::to_string(*number);
  return TextOf(instance, "instance_id");
}

void ReadModels(const MetricsPage& page, std::string_view metric,
                std::optional<double> DynamoModel::* member, DynamoLook& look) {
  std::string scratch;
  for (const PrometheusSample& sample : page.Samples(metric)) {
    const std::string name = Shown(sample.Label("model", scratch).value_or(""), 200);
    auto at = std::ranges::find(look.models, name, &DynamoModel::name);
    if (at == look.models.end()) {
      if (look.models.size() == DynamoLook::kMaxModels) continue;
      at = look.models.insert(look.models.end(), DynamoModel{.name = name});
    }
    (*at).*member = sample.value();
  }
}

// The frontend's own, or that of the router as a component of its own.
Observations Either(const MetricsPage& page, std::string_view first, std::string_view second) {
  const Observations seen = page.Histogram(first);
  return seen.count > 0 ? seen : page.Histogram(second);
}

MetricsPage::ByLabel AppliedBy(const MetricsPage& page, std::string_view label) {
  for (const std::string_view name :
       {"dynamo_component_kv_cache_events_applied", "dynamo_kvrouter_kv_cache_events_applied",
        "dynamo_component_kv_cache_events_applied_total",
        "dynamo_component_router_kv_cache_events_applied"}) {
    auto sums = page.SumBy(name, label);
    if (!sums.empty()) return sums;
  }
  return {};
}

}  // namespace

std::optional<double> DynamoLook::NotApplied() const {
  double all = 0;
  double ok = 0;
  for (const auto& [outcome, events] : events_by_status) {
    all += events;
    if (outcome == "ok") ok += events;
  }
  return all > 0 ? std::optional(1 - ok / all) : std::nullopt;
}

void ReadDynamoHealth(int status, std::string_view page, DynamoLook& look) {
  const auto json = Json::ParseWithLargeNumbers(page);
  if (!json || json->object() == nullptr) {
    look.status = status == 200 ? "answers" : fmt::format("answered {}", status);
    return;
  }
  look.status = TextOf(*json, "status");
  look.message = TextOf(*json, "message");
  for (const Json& instance : ListOf(*json, "instances")) {
    if (look.instances.size() == DynamoLook::kMaxInstances) break;
    look.instances.push_back({.component = TextOf(instance, "component"),
                              .endpoint = TextOf(instance, "endpoint"),
                              .id = InstanceId(instance)});
  }
}

void ReadDynamoMetrics(const MetricsPage& page, DynamoLook& look) {
  look.has_metrics = page.HasPrefix("dynamo_");
  ReadModels(page, "dynamo_frontend_model_kv_cache_block_size", &DynamoModel::block_size, look);
  ReadModels(page, "dynamo_frontend_model_total_kv_blocks", &DynamoModel::kv_blocks, look);
  ReadModels(page, "dynamo_frontend_model_max_num_seqs", &DynamoModel::max_num_seqs, look);
  ReadModels(page, "dynamo_frontend_model_max_num_batched_tokens", &DynamoModel::max_batched_tokens,
             look);
  ReadModels(page, "dynamo_frontend_model_context_length", &DynamoModel::context_length, look);
  look.events_by_status = AppliedBy(page, "status");
  look.events_by_type = AppliedBy(page, "event_type");
  look.hit_rate =
      Either(page, "dynamo_component_router_kv_hit_rate", "dynamo_frontend_kv_hit_rate");
  look.overlap_lost = page.Histogram("dynamo_component_router_overlap_blocks_lost");
  look.first_token = Either(page, "dynamo_frontend_time_to_first_token_seconds",
                            "dynamo_component_router_time_to_first_token_seconds");
  look.prompt_length = Either(page, "dynamo_frontend_input_sequence_tokens",
                              "dynamo_component_router_input_sequence_tokens");
  look.cached_tokens = page.Histogram("dynamo_frontend_cached_tokens");
  look.requests = page.Sum("dynamo_frontend_requests_total");
  look.active_prefill_tokens = page.Sum("dynamo_frontend_worker_active_prefill_tokens");
  look.active_decode_blocks = page.Sum("dynamo_frontend_worker_active_decode_blocks");
  look.queued_requests = page.Sum("dynamo_frontend_queued_requests");
  look.registered_workers = page.Sum("dynamo_component_router_worker_registered");
  look.source_mismatch_workers =
      page.Sum("dynamo_component_router_kv_event_source_mismatch_workers");
}

Task<DynamoLook> LookAtDynamo(ReadOnlyClient& client) {
  DynamoLook look;
  look.url = client.url();
  auto asking_health = client.Get("/health");
  const auto health = co_await asking_health;
  if (!health) {
    look.problem = WhyNot(health, kDynamoKeyOption);
    co_return std::move(look);
  }
  look.reached = true;
  ReadDynamoHealth(health->status, health->body, look);
  auto asking_metrics = client.Get("/metrics");
  auto metrics = co_await asking_metrics;
  if (metrics && metrics->status == 200) {
    ReadDynamoMetrics(MetricsPage(std::move(metrics->body)), look);
  }
  if (!look.has_metrics) {
    const std::string why = WhyNot(metrics, kDynamoKeyOption);
    look.problem = "/metrics " + (why.empty() ? "has no Dynamo metrics" : why);
  }
  co_return std::move(look);
}

}  // namespace fathom
