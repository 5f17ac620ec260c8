#include "router/gateway/health_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"
#include "base/wall_time.h"

namespace fathom {
namespace {

void WriteKnown(JsonWriter& w, std::string_view key, uint64_t value) {
  w.Key(key);
  value == 0 ? w.Null() : w.Unsigned(value);
}

void WriteText(JsonWriter& w, std::string_view key, std::string_view value) {
  w.Key(key);
  value.empty() ? w.Null() : w.String(value);
}

// The engine's own report; values that it has not reported are null.
void WriteReport(JsonWriter& w, const WorkerReport& reported) {
  const auto current = reported.Current();
  const EngineReport report = current != nullptr ? *current : EngineReport{};
  WriteText(w, "engine", current == nullptr ? "" : Name(report.engine));
  WriteKnown(w, "kv_tokens", report.kv_tokens);
  WriteKnown(w, "kv_blocks", report.num_blocks);
  WriteKnown(w, "context_length", report.context_length);
  WriteKnown(w, "max_running", report.max_running);
  WriteKnown(w, "batch_tokens", report.batch_tokens);
  w.Key("prefix_caching");
  report.prefix_caching ? w.Bool(*report.prefix_caching) : w.Null();
  w.Key("load");
  if (const auto load = report.TotalLoad()) {
    w.BeginObject().Key("running").Unsigned(load->running).Key("waiting").Unsigned(load->waiting);
    w.Key("cache_usage").Number(load->cache_usage).EndObject();
  } else {
    w.Null();
  }
  w.Key("report_age_seconds");
  const auto published = reported.published();
  published ? w.Number(Seconds(std::chrono::steady_clock::now() - *published)) : w.Null();
}

TrustKeeper::Standing StandingOf(const GatewayContext& context, WorkerId worker, uint32_t rank) {
  if (context.trust != nullptr) return context.trust->StandingOf(worker, rank);
  const BlockSizes::RankStanding agreed = context.sizes->StandingOf(worker, rank);
  return {.trust = agreed.trust, .words = agreed.words};
}

// `feed` is null if the rank's events are not followed.
void WriteRank(JsonWriter& w, const GatewayContext& context, const Member& member, uint32_t rank,
               const FeedStatus* feed) {
  const TrustKeeper::Standing standing = StandingOf(context, member.worker->id(), rank);
  const bool ill = standing.trust.cause == TrustCause::kUnhealthy;
  const int64_t heard = feed == nullptr ? 0 : feed->last_event.load(std::memory_order_relaxed);
  w.BeginObject().Key("rank").Unsigned(rank).Key("trust").String(Name(standing.trust.state));
  WriteText(w, "cause", Name(standing.trust.cause));
  w.Key("since");  // null: the worker was added just now
  const TimePoint since = standing.trust.since;
  since == TimePoint{} ? w.Null() : w.String(WallTime(since));
  WriteText(w, "evidence", ill ? member.cause : standing.words.evidence);
  WriteText(w, "fix", standing.words.fix);
  WriteText(w, "docs", context.log.docs().To(RunbookOf(standing.trust.cause)));
  w.Key("cost_tokens").Unsigned(standing.cost);
  w.Key("credit").BeginObject();
  w.Key("plain").Number(standing.credit[0]).Key("adapter").Number(standing.credit[1]);
  w.Key("salted").Number(standing.credit[2]).EndObject();
  WriteText(w, "events", feed == nullptr ? "" : feed->source);
  w.Key("blocks").Unsigned(feed == nullptr ? 0 : feed->blocks.Get());
  w.Key("last_event_age_seconds");
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  heard == 0 ? w.Null() : w.Number(Seconds(now - Duration(heard)));
  w.EndObject();
}

void WriteSizes(JsonWriter& w, const GatewayContext& context, const Member& member) {
  const WorkerId worker = member.worker->id();
  const BlockSizeAgreement::Known known = context.sizes->SizeOf(worker);
  WriteKnown(w, "block_size", known.size);
  WriteText(w, "block_size_source", Name(known.source));
  w.Key("ranks").BeginArray();
  const FeedBoard::Feeds feeds =
      context.feeds == nullptr ? FeedBoard::Feeds() : context.feeds->Of(worker);
  for (const auto& feed : feeds) {
    WriteRank(w, context, member, feed->dp_rank.load(std::memory_order_relaxed), feed.get());
  }
  if (feeds.empty()) WriteRank(w, context, member, 0, nullptr);
  w.EndArray();
}

void WriteWorker(JsonWriter& w, const GatewayContext& context, const Member& member) {
  const Worker& worker = *member.worker;
  w.BeginObject().Key("id").Unsigned(worker.id().value());
  w.Key("url").String(worker.spec().url);
  w.Key("models").BeginArray();
  for (const std::string& model : member.models) w.String(model);
  w.EndArray();
  w.Key("state").String(Name(member.state));
  WriteText(w, "cause", member.cause);
  w.Key("circuit").String(worker.breaker.open() ? "open" : "closed");
  w.Key("in_flight").Unsigned(worker.in_flight.load(std::memory_order_relaxed));
  w.Key("requests").Unsigned(worker.requests.Value());
  WriteReport(w, worker.report);
  if (context.sizes != nullptr) WriteSizes(w, context, member);
  w.EndObject();
}

Answer NotReady(std::string_view status, std::string_view reason) {
  JsonWriter w;
  w.BeginObject().Key("status").String(status).Key("reason").String(reason).EndObject();
  return {.status = 503, .body = w.Take()};
}

std::string WhyNobody(const FleetSnapshot& fleet) {
  if (fleet.members().empty()) {
    return "there are no workers: set --worker-urls, or add some with POST /workers";
  }
  const auto count = [&](WorkerState state) {
    return std::ranges::count(fleet.members(), state, &Member::state);
  };
  std::string why = fmt::format("none of the {} workers can be routed to:", fleet.members().size());
  if (const auto n = count(WorkerState::kProbing)) why += fmt::format(" {} probing,", n);
  if (const auto n = count(WorkerState::kUnhealthy)) why += fmt::format(" {} unhealthy,", n);
  if (const auto n = count(WorkerState::kExcluded)) {
    why += fmt::format(" {} excluded (block_size_conflict),", n);
  }
  why.back() = ';';
  return why + " see GET /health";
}

// A rank whose events cannot be used costs avoidable prefill.
bool AnyDoubted(const GatewayContext& context, const FleetSnapshot& fleet) {
  if (context.trust != nullptr) return !context.trust->AllDoubted().empty();
  return std::ranges::any_of(fleet.members(), [](const Member& member) {
    bool doubted = false;
    member.worker->ranks.ForEach([&](const Rank& rank) {
      doubted = doubted || rank.doubted.load(std::memory_order_relaxed);
    });
    return doubted;
  });
}

std::string WhyDoubted(const std::vector<TrustKeeper::Doubted>& doubted) {
  const TrustKeeper::Doubted& first = doubted.front();
  return fmt::format(
      "{} ranks are doubted (--ready-when trusted), rank {} of {} for {}; GET /health has the fix",
      doubted.size(), first.rank, first.url, Name(first.cause));
}

}  // namespace

Answer ReadyPage(const GatewayContext& context) {
  if (context.draining.load(std::memory_order_relaxed)) {
    return NotReady("draining", "the router is shutting down");
  }
  const auto fleet = context.fleet.Current();
  if (context.sizes != nullptr && context.sizes->refused_to_start()) {
    return NotReady("refused",
                    "the workers disagree about the KV block size; the log names each "
                    "worker and its size");
  }
  const size_t awaited = context.sizes == nullptr ? 0 : context.sizes->Awaited().size();
  if (context.sizes != nullptr && context.sizes->starting() && awaited == 0) {
    return NotReady("starting", "DNS lookups of worker names are pending");
  }
  if (context.sizes != nullptr && context.sizes->starting()) {
    return NotReady("starting",
                    fmt::format("{} of {} workers have not reported their KV block size; waiting "
                                "at most {} s (--block-size-wait) for the first, then one more",
                                awaited, fleet->members().size(), Seconds(context.sizes->wait())));
  }
  if (fleet->routable() == 0) return NotReady("no worker is ready", WhyNobody(*fleet));
  if (context.options.ready_when_trusted && context.trust != nullptr) {
    if (const auto doubted = context.trust->AllDoubted(); !doubted.empty()) {
      return NotReady("doubted", WhyDoubted(doubted));
    }
  }
  return {.body = R"({"status":"ready"})"};
}

Answer HealthPage(const GatewayContext& context, bool with_workers) {
  const auto fleet = context.fleet.Current();
  const size_t ready = fleet->routable();
  const bool whole = ready == fleet->members().size() && !AnyDoubted(context, *fleet);
  JsonWriter w;
  w.BeginObject().Key("status").String(ready == 0 ? "down" : whole ? "ok" : "degraded");
  w.Key("version").String(kVersion);
  w.Key("router_mode").String(Name(context.options.steering.mode));
  w.Key("router_kv_events").Bool(context.options.steering.events);
  w.Key("draining").Bool(context.draining.load(std::memory_order_relaxed));
  w.Key("requests_in_flight").Int(context.admission.inside());
  w.Key("requests_waiting").Int(context.admission.waiting());
  w.Key("workers_ready").Unsigned(ready).Key("workers_total").Unsigned(fleet->members().size());
  if (with_workers) WriteWorkers(w, context, *fleet);
  w.EndObject();
  return {.status = ready == 0 ? 503 : 200, .body = w.Take()};
}

void WriteWorkers(JsonWriter& w, const GatewayContext& context, const FleetSnapshot& fleet) {
  w.Key("workers").BeginArray();
  for (const Member& member : fleet.members()) WriteWorker(w, context, member);
  w.EndArray();
}

}  // namespace fathom
