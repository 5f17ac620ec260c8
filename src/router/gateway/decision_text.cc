#include "router/gateway/decision_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fathom {
namespace {

void WriteRank(JsonWriter& w, const RankView& rank, const Price& price,
               const FleetSnapshot& fleet) {
  const Member* const member = fleet.Find(WorkerId(rank.rank.worker));
  w.BeginObject()
      .Key("worker")
      .Unsigned(rank.rank.worker)
      .Key("dp_rank")
      .Unsigned(rank.rank.dp_rank)
      .Key("position")
      .Unsigned(rank.position);
  w.Key("url");
  member != nullptr ? w.String(member->worker->spec().url) : w.Null();
  w.Key("cost").Number(price.cost);
  w.Key("cached_tokens").Unsigned(rank.cached[0]);
  w.Key("cached_tiers");
  WriteTiers(w, rank.cached);
  w.Key("block_size");
  rank.block_size == 0 ? w.Null() : w.Unsigned(rank.block_size);
  w.Key("believed_tokens").Unsigned(rank.believed).Key("shared_tokens").Unsigned(rank.shared);
  w.Key("text_depth").Unsigned(rank.text);
  w.Key("held_tokens").Unsigned(rank.held).Key("capacity_tokens");
  rank.capacity == 0 ? w.Null() : w.Unsigned(rank.capacity);
  w.Key("trust").Number(rank.trust).Key("slowness").Number(rank.slowness);
  w.Key("backlog_tokens").Number(rank.load.backlog);
  w.Key("queued_tokens").Number(rank.load.queued);
  w.Key("context_tokens").Unsigned(rank.load.context);
  w.Key("requests").Unsigned(rank.load.requests).Key("waiting").Unsigned(rank.load.waiting);
  w.Key("reused_tokens").Number(price.reused).Key("prefill_work").Number(price.work);
  w.Key("evicted_tokens").Number(price.evicted);
  w.Key("prefill").Number(price.prefill).Key("decode").Number(price.decode).EndObject();
}

void WriteWeights(JsonWriter& w, const Weights& weights) {
  w.Key("weights").BeginObject();
  w.Key("overlap_score_credit").Number(weights.overlap_credit);
  w.Key("prefill_load_scale").Number(weights.prefill_scale);
  w.Key("decode_active_request_weight").Number(weights.active_request);
  w.Key("host_cache_hit_weight").Number(weights.host_hit);
  w.Key("disk_cache_hit_weight").Number(weights.disk_hit);
  w.Key("router_temperature").Number(weights.temperature).EndObject();
}

// Null before the answer has ended.
void WriteWaste(JsonWriter& w, const Decision& decision) {
  w.Key("wasted_tokens");
  if (!decision.served) {
    w.Null();
    return;
  }
  w.BeginObject();
  for (size_t i = 0; i < kWasteCauses; ++i) {
    if (decision.waste.tokens[i] == 0) continue;
    w.Key(Name(static_cast<WasteCause>(i))).Unsigned(decision.waste.tokens[i]);
  }
  w.EndObject();
}

// Candidates that are not listed.
void WriteOthers(JsonWriter& w, const Decision::Others& others) {
  const auto number = [&](std::string_view name, double value) {
    w.Key(name);
    std::isfinite(value) ? w.Number(value) : w.Null();
  };
  w.Key("others").BeginObject().Key("count").Unsigned(others.count);
  number("lowest_cost", others.lowest);
  number("highest_cost", others.highest);
  w.Key("requests").Unsigned(others.requests).EndObject();
}

// The rank of the session's hint; null: there was none, or its rank was not a candidate.
void WriteHint(JsonWriter& w, const Decision& decision) {
  w.Key("hint");
  if (!decision.hint) {
    w.Null();
    return;
  }
  w.BeginObject().Key("kind").String(Name(decision.hint->kind));
  w.Key("worker").Unsigned(decision.hint->rank.worker);
  w.Key("dp_rank").Unsigned(decision.hint->rank.dp_rank);
  w.Key("believed_tokens").Unsigned(decision.hint->tokens);
  w.Key("decided").Bool(decision.hint_decided).EndObject();
}

std::string_view DepthsFrom(const Decision& decision) {
  if (!decision.tokens_known) return "nothing: the prompt's tokens are not known";
  if (decision.by_text) return "texts of earlier prompts";
  return decision.events ? "events" : "own decisions";
}

}  // namespace

std::string SelectionLine(const Decision& decision) {
  const RankView& rank = decision.rank();
  const uint32_t blocks = rank.block_size == 0 ? 0 : decision.cached_tokens() / rank.block_size;
  return fmt::format(
      "Selected worker: worker_id={} dp_rank={}, logit: {:.3f}, cached blocks: {}, tree size: {}",
      rank.rank.worker, rank.rank.dp_rank, decision.price().cost, blocks, decision.tree_size);
}

void WriteDecision(JsonWriter& w, const Decision& decision, const FleetSnapshot& fleet,
                   TimePoint now) {
  w.BeginObject();
  WriteDecisionMembers(w, decision, fleet, now);
  w.EndObject();
}

void WriteDecisionMembers(JsonWriter& w, const Decision& decision, const FleetSnapshot& fleet,
                          TimePoint now) {
  w.Key("number");
  decision.number == 0 ? w.Null() : w.Unsigned(decision.number);
  w.Key("age_seconds").Number(Seconds(now - decision.at));
  w.Key("request_id").String(decision.request_id).Key("model").String(decision.model);
  w.Key("mode").String(Name(decision.mode)).Key("depths_from").String(DepthsFrom(decision));
  w.Key("prompt_tokens").Unsigned(decision.prompt.tokens);
  w.Key("tokens_from").String(decision.tokens_from);
  w.Key("known_tokens").Unsigned(decision.known_tokens).Key("inexact");
  decision.inexact.empty() ? w.Null() : w.String(decision.inexact);
  w.Key("narrowed_by");
  decision.narrowed_by.empty() ? w.Null() : w.String(decision.narrowed_by);
  WriteHint(w, decision);
  w.Key("pressure").Number(decision.prompt.pressure);
  w.Key("waited_seconds").Number(decision.waited);
  w.Key("tree_size").Unsigned(decision.tree_size);
  w.Key("random").String(std::to_string(decision.random));
  WriteWeights(w, decision.weights);
  w.Key("worker").Unsigned(decision.rank().rank.worker);
  w.Key("dp_rank").Unsigned(decision.rank().rank.dp_rank);
  w.Key("cached_tokens").Unsigned(decision.cached_tokens());
  w.Key("believed_tokens").Unsigned(decision.rank().believed);
  w.Key("cost").Number(decision.price().cost).Key("margin").Number(decision.margin);
  w.Key("found_tokens");
  decision.found ? w.Unsigned(*decision.found) : w.Null();
  WriteWaste(w, decision);
  // The cheapest first.
  std::vector<size_t> order(decision.ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(decision.prices[i].cost, i); });
  w.Key("candidates").BeginArray();
  for (const size_t i : order) WriteRank(w, decision.ranks[i], decision.prices[i], fleet);
  w.EndArray();
  w.Key("places").Unsigned(decision.places);
  WriteOthers(w, decision.others);
  w.Key("full").BeginArray();
  for (const RankLabel& rank : decision.full) {
    w.BeginObject().Key("worker").Unsigned(rank.worker).Key("dp_rank").Unsigned(rank.dp_rank);
    w.EndObject();
  }
  w.EndArray();
}

}  // namespace fathom
