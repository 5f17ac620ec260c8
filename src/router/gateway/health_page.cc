#include "router/gateway/health_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "base/version.h"
#include "base/wall_time.h"
#include "router/gateway/replica_pages.h"
#include "router/gateway/source_pages.h"
#include "router/gateway/worker_admission.h"

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
void WriteRankHealth(JsonWriter& w, const GatewayContext& context, const Member& member,
                     uint32_t rank, const FeedStatus* feed) {
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
    WriteRankHealth(w, context, member, feed->dp_rank.load(std::memory_order_relaxed), feed.get());
  }
  if (feeds.empty()) WriteRankHealth(w, context, member, 0, nullptr);
  w.EndArray();
}

// Who named it; the one whose word counts most is the source.
void WriteOrigin(JsonWriter& w, const WorkerOrigin& origin) {
  WriteText(w, "source", origin.sources.empty() ? std::string_view() : origin.sources.front());
  w.Key("sources").BeginArray();
  for (const std::string& source : origin.sources) w.String(source);
  w.EndArray();
  WriteText(w, "role", origin.role);
  w.Key("labels").BeginObject();
  for (const auto& [name, value] : origin.labels) w.Key(name).String(value);
  w.EndObject();
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
  WriteText(w, "waits_for", Name(WaitOf(context, member, std::chrono::steady_clock::now())));
  WriteOrigin(w, *member.origin);
  w.Key("circuit").String(worker.breaker.open() ? "open" : "closed");
  w.Key("in_flight").Unsigned(worker.in_flight.load(std::memory_order_relaxed));
  w.Key("requests").Unsigned(worker.requests.Value());
  WriteReport(w, worker.report);
  if (context.sizes != nullptr) WriteSizes(w, context, member);
  w.EndObject();
}

std::string_view PromptCauseName(PromptWatch::Cause cause) {
  switch (cause) {
    case PromptWatch::Cause::kUnread:
      return "prompts_unread";
    case PromptWatch::Cause::kByText:
      return "prompts_by_text";
    case PromptWatch::Cause::kNone:
      break;
  }
  return "";
}

// The files that the router tokenizes the model's prompts with; null if it has none.
void WriteFiles(JsonWriter& w, const KnownFiles* files) {
  w.Key("files");
  if (files == nullptr) {
    w.Null();
    return;
  }
  w.BeginObject().Key("origin").String(Name(files->origin));
  WriteText(w, "path", files->path);
  WriteText(w, "found_by", files->found_by);
  w.Key("usable").Bool(files->model != nullptr);
  WriteText(w, "problem", files->problem);
  w.EndObject();
}

// Whether the prompts of each model are read. Paths are for operators.
void WriteModels(JsonWriter& w, const GatewayContext& context, const FleetSnapshot& fleet,
                 bool with_paths) {
  constexpr size_t kMost = 1024;  // of an engine's adapters there may be any number
  std::set<std::string_view> models;
  for (const Member& member : fleet.members()) {
    models.insert(member.models.begin(), member.models.end());
  }
  // Also those that workers serve without naming them.
  const std::vector<std::string> unread = context.prompt_watch.UnreadIn(fleet);
  models.insert(unread.begin(), unread.end());
  const auto shelf = context.models.Current();
  w.Key("models").BeginArray();
  for (const std::string_view model : models | std::views::take(kMost)) {
    const PromptWatch::Standing standing = context.prompt_watch.StandingOf(model);
    w.BeginObject().Key("model").String(model);
    w.Key("status").String(standing.degraded() ? "degraded" : "ok");
    WriteText(w, "cause", PromptCauseName(standing.cause));
    w.Key("share").Number(standing.share);
    const bool known = standing.cause != PromptWatch::Cause::kNone && standing.reason;
    WriteText(w, "reason", known ? Name(*standing.reason) : "");
    WriteText(w, "route", known ? Name(standing.route) : "");
    WriteText(w, "engine", known ? Name(standing.engine) : "");
    w.Key("cost_tokens").Unsigned(standing.cost);
    WriteText(w, "fix", standing.fix);
    WriteText(w, "docs",
              standing.degraded() ? context.log.docs().To("runbooks/prompts-unread.md") : "");
    if (with_paths) WriteFiles(w, shelf->Find(model, fleet.BaseOf(model)));
    w.EndObject();
  }
  w.EndArray();
}

Answer NotReady(std::string_view status, std::string_view reason) {
  JsonWriter w;
  w.BeginObject().Key("status").String(status).Key("reason").String(reason).EndObject();
  return {.status = 503, .body = w.Take()};
}

std::string WhyNobody(const FleetSnapshot& fleet, const WorkerSources* sources) {
  const size_t named = sources == nullptr ? 0 : sources->followed();
  if (fleet.members().empty() && named > 0) {
    return fmt::format(
        "there are no workers: none of the {} sources names one; GET /health has their state",
        named);
  }
  if (fleet.members().empty()) {
    return "there are no workers: set --worker-urls, or add some with POST /workers";
  }
  const auto count = [&](WorkerState state) {
    return std::ranges::count(fleet.members(), state, &Member::state);
  };
  std::string why = fmt::format("none of the {} workers can be routed to:", fleet.members().size());
  if (const auto n = count(WorkerState::kProbing)) why += fmt::format(" {} probing,", n);
  if (const auto n = count(WorkerState::kUnhealthy)) why += fmt::format(" {} unhealthy,", n);
  if (const auto n = count(WorkerState::kUnready)) why += fmt::format(" {} not ready,", n);
  if (const auto n = count(WorkerState::kDraining)) why += fmt::format(" {} draining,", n);
  if (const auto n = count(WorkerState::kOutside)) {
    why += fmt::format(" {} outside (serve none of --models),", n);
  }
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

// Workers that should be ready. One that ends, or has not begun, is as its source wants it; one of
// other models is other replicas' concern.
size_t Expected(const FleetSnapshot& fleet) {
  return static_cast<size_t>(std::ranges::count_if(fleet.members(), [](const Member& member) {
    return member.state != WorkerState::kDraining && member.state != WorkerState::kUnready &&
           member.state != WorkerState::kOutside;
  }));
}

std::string WhyDoubted(const std::vector<TrustKeeper::Doubted>& doubted) {
  const TrustKeeper::Doubted& first = doubted.front();
  return fmt::format(
      "{} ranks are doubted (--ready-when trusted), rank {} of {} for {}; GET /health has the fix",
      doubted.size(), first.rank, first.url, Name(first.cause));
}

// Why the index is not what it could be yet; empty: it is.
std::string WhyNotInformed(const GatewayContext& context, const FleetSnapshot& fleet) {
  if (context.replicas != nullptr) {
    const auto view = context.replicas->Current();
    if (view == nullptr || !view->informed) {
      return "the index is being taken over from another replica (--ready-when informed)";
    }
  }
  // A worker that joins later is no reason to take every router out of its balancer at once:
  // requests of its model wait for its replay by themselves.
  if (context.was_informed.load(std::memory_order_relaxed)) return "";
  const TimePoint now = std::chrono::steady_clock::now();
  const auto replaying = std::ranges::count_if(fleet.members(), [&](const Member& member) {
    return member.state == WorkerState::kReady &&
           member.worker->catch_up.Awaited(now, context.options.replay_timeout);
  });
  if (replaying == 0) {
    context.was_informed.store(true, std::memory_order_relaxed);
    return "";
  }
  return fmt::format("{} workers replay their KV events (--ready-when informed)", replaying);
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
    return NotReady("starting", "sources of workers have not answered yet");
  }
  if (context.sizes != nullptr && context.sizes->starting()) {
    return NotReady("starting",
                    fmt::format("{} of {} workers have not reported their KV block size; waiting "
                                "at most {} s (--block-size-wait) for the first, then one more",
                                awaited, fleet->members().size(), Seconds(context.sizes->wait())));
  }
  if (fleet->routable() == 0)
    return NotReady("no worker is ready", WhyNobody(*fleet, context.sources));
  if (context.options.ready_when_informed && context.cache_index != nullptr) {
    if (const std::string why = WhyNotInformed(context, *fleet); !why.empty()) {
      return NotReady("not informed", why);
    }
  }
  if (context.options.ready_when_trusted && context.trust != nullptr) {
    if (const auto doubted = context.trust->AllDoubted(); !doubted.empty()) {
      return NotReady("doubted", WhyDoubted(doubted));
    }
  }
  if (context.options.ready_when_trusted) {
    // Behind a load balancer a router that is not ready gets no prompts that could show better.
    const TimePoint lately = std::chrono::steady_clock::now() - std::chrono::minutes(1);
    if (const auto unread = context.prompt_watch.UnreadIn(*fleet, lately); !unread.empty()) {
      return NotReady("prompts unread",
                      fmt::format("prompts of {} models are routed without their prefix "
                                  "(--ready-when trusted), among them {}; GET /health has the fix",
                                  unread.size(), unread.front()));
    }
  }
  return {.body = R"({"status":"ready"})"};
}

Answer HealthPage(const GatewayContext& context, bool with_workers) {
  const auto fleet = context.fleet.Current();
  const size_t ready = fleet->routable();
  const size_t stale = StaleSources(context.sources);
  const bool whole = ready == Expected(*fleet) && stale == 0 && !AnyDoubted(context, *fleet) &&
                     context.prompt_watch.UnreadIn(*fleet).empty() &&
                     ReplicaProblem(context.replicas).empty();
  JsonWriter w;
  w.BeginObject().Key("status").String(ready == 0 ? "down" : whole ? "ok" : "degraded");
  w.Key("version").String(kVersion);
  w.Key("router_mode").String(Name(context.options.steering.mode));
  w.Key("router_kv_events").Bool(context.options.steering.events);
  w.Key("draining").Bool(context.draining.load(std::memory_order_relaxed));
  w.Key("requests_in_flight").Int(context.admission.inside());
  w.Key("requests_waiting").Int(context.admission.waiting());
  w.Key("workers_ready").Unsigned(ready).Key("workers_total").Unsigned(fleet->members().size());
  w.Key("sources_stale").Unsigned(stale);
  WriteModels(w, context, *fleet, with_workers);
  if (with_workers) {
    WriteReplicas(w, context.replicas);
    WriteSources(w, context.sources);
    WriteWorkers(w, context, *fleet);
  }
  w.EndObject();
  return {.status = ready == 0 ? 503 : 200, .body = w.Take()};
}

void WriteWorkers(JsonWriter& w, const GatewayContext& context, const FleetSnapshot& fleet) {
  w.Key("workers").BeginArray();
  for (const Member& member : fleet.members()) WriteWorker(w, context, member);
  w.EndArray();
}

}  // namespace fathom
