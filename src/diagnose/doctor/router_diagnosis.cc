#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/doctor/live_diagnosis.h"
#include "diagnose/doctor/remedies.h"
#include "diagnose/doctor/replica_findings.h"
#include "diagnose/doctor/trust_findings.h"
#include "diagnose/doctor/unread_findings.h"
#include "diagnose/doctor/waste_remedies.h"
#include "diagnose/manifest/identity.h"

namespace fathom {
namespace {

constexpr double kWorthSaying = 0.05;  // share of prompt tokens that were prefilled in vain
constexpr double kEnoughTokens = 10'000;
constexpr double kEnoughRequests = 50;

class RouterDiagnosis {
 public:
  RouterDiagnosis(const RouterLook& router, FindingBook& book) : router_(router), book_(book) {
    for (const RoutedWorker& worker : router.workers) ranks_ += worker.ranks.size();
  }

  void Run() {
    for (const RoutedWorker& worker : router_.workers) {
      LookAtState(worker);
      for (const RoutedRank& rank : worker.ranks) LookAtRank(worker, rank);
    }
    for (const RoutedModel& model : router_.models) LookAtModel(model);
    for (const RoutedSource& source : router_.sources) LookAtSource(source);
    for (Finding& finding : ReplicaFindings(router_)) book_.Add(std::move(finding));
    LookAtReadiness();
    LookAtMode();
    LookAtIndex();
    LookAtPredictions();
    LookAtWaste();
  }

 private:
  std::string Page(std::string_view page) const {
    return fmt::format("GET {}{}", router_.url, page);
  }

  Finding Found(FindingId id, std::string subject, std::string message) const {
    Finding finding = MakeFinding(id, std::move(subject), std::move(message));
    finding.fixes = RemediesFor(id, {.router = RouterKind::kFathom});
    return finding;
  }

  double Share() const { return ranks_ == 0 ? 1.0 : 1.0 / static_cast<double>(ranks_); }

  void LookAtState(const RoutedWorker& worker) {
    if (worker.state != "unhealthy" && worker.state != "excluded") return;
    const bool conflict = worker.cause == "block_size_conflict";
    Finding finding = Found(
        conflict ? FindingId::kBlockSizeConflict : FindingId::kUnhealthy, worker.url,
        conflict ? fmt::format(
                       "A worker is refused: its block size of {} tokens differs from the fleet's",
                       worker.block_size)
                 : fmt::format("A worker is {} and gets no requests", worker.state));
    finding.why = "Its cached prefixes cannot be used";
    finding.evidence.push_back(fmt::format("{}: {} is {}{}", Page("/health"), worker.url,
                                           worker.state,
                                           worker.cause.empty() ? "" : ", " + worker.cause));
    for (const RoutedRank& rank : worker.ranks) {
      if (rank.evidence.empty()) continue;
      finding.evidence.push_back(fmt::format("rank {}: {}", rank.rank, rank.evidence));
      if (!rank.fix.empty()) {
        finding.fixes.insert(finding.fixes.begin(), Fix{.what = Capitalised(rank.fix)});
      }
    }
    const double workers = static_cast<double>(std::max<size_t>(router_.workers.size(), 1));
    finding.gain = 1 / workers;
    finding.gain_basis = fmt::format("one of {} workers", router_.workers.size());
    book_.Add(std::move(finding));
  }

  void LookAtRank(const RoutedWorker& worker, const RoutedRank& rank) {
    if (rank.trust != "doubted") return;
    book_.Add(DoubtFinding({.source = Page("/health"),
                            .url = worker.url,
                            .rank = rank.rank,
                            .cause = rank.cause,
                            .evidence = rank.evidence,
                            .fix = rank.fix,
                            .cost_tokens = rank.cost_tokens,
                            .engine = EngineNamed(worker.engine),
                            .share = Share()}));
  }

  // Trusted ranks do not help prompts that are not read. Prompts that are compared by their text
  // are no problem: the section has them.
  void LookAtModel(const RoutedModel& model) {
    if (model.cause != "prompts_unread") return;
    Finding finding =
        UnreadFinding({.source = Page("/health"),
                       .model = model.model,
                       .unread = fmt::format("{:.0f} % of the last prompts", 100 * model.share),
                       .reason = model.reason,
                       .route = model.route,
                       .engine = model.engine,
                       .fix = model.fix,
                       .cost_tokens = model.cost_tokens,
                       .share = model.share});
    for (const auto& [reason, prompts] : router_.counters.unread) {
      if (prompts <= 0) continue;
      finding.evidence.push_back(
          fmt::format("{}: {:.0f} prompts of all models were not read since the start, reason {}",
                      Page("/metrics"), prompts, reason));
    }
    const auto wasted = router_.counters.wasted.find("prompts_unread");
    if (wasted != router_.counters.wasted.end() && wasted->second > 0) {
      finding.evidence.push_back(fmt::format(
          "{}: about {:.0f} tokens of unread prompts were prefilled although another rank had "
          "computed them",
          Page("/metrics"), wasted->second));
    }
    book_.Add(std::move(finding));
  }

  // An error from Kubernetes names the verb and the resource that a Role has to allow.
  void LookAtSource(const RoutedSource& source) {
    if (source.status != "stale") return;
    Finding finding =
        Found(FindingId::kSourceStale, source.source,
              fmt::format("The router cannot read {}: it sees no change of these workers",
                          source.source));
    finding.why =
        source.workers == 0
            ? "None of its workers is known, so none gets requests"
            : "Known workers stay, but new ones get no requests, and one that ends is noticed only "
              "when it fails";
    finding.evidence.push_back(
        fmt::format("{}: {} is stale, with {} workers: {}", Page("/health"), source.source,
                    source.workers, source.error.empty() ? "no reason is given" : source.error));
    finding.gain = source.workers == 0 ? 1 : 0.1;
    finding.gain_basis = "as judged by the running router";
    book_.Add(std::move(finding));
  }

  void LookAtReadiness() {
    if (router_.ready || router_.draining) return;
    Finding finding = Found(FindingId::kUnhealthy, router_.url, "The router is not ready");
    const bool by_choice = router_.not_ready_because.contains("--ready-when ");
    finding.why = by_choice
                      ? "Requests succeed, but a load balancer sends it none, as --ready-when "
                        "says"
                      : "Every request is refused until a worker can be routed to";
    finding.evidence.push_back(fmt::format(
        "{}: {}", Page("/ready"),
        router_.not_ready_because.empty() ? "no reason is given" : router_.not_ready_because));
    finding.gain = 1;
    book_.Add(std::move(finding));
  }

  void LookAtMode() {
    const std::string& mode = router_.mode.empty() ? router_.decisions.mode : router_.mode;
    if (!mode.empty() && mode != "kv") {
      Finding finding =
          Found(FindingId::kRouterModeMissing, router_.url,
                fmt::format("The router runs in mode {}, which ignores the caches", mode));
      finding.why = "Follow-up turns go to any worker and are prefilled from their first token";
      finding.evidence.push_back(fmt::format("{}: router_mode {}", Page("/health"), mode));
      finding.gain = 1;
      finding.gain_basis = "no request is routed by cached prefixes";
      book_.Add(std::move(finding));
    } else if (router_.kv_events == false) {
      Finding finding = Found(FindingId::kKvEventsUnused, router_.url,
                              "The router estimates the caches from its own decisions");
      finding.why = "It does not see what engines evict, nor what other routers send them";
      finding.evidence.push_back(Page("/health") + ": router_kv_events false");
      finding.gain = 0.3;
      book_.Add(std::move(finding));
    }
  }

  void LookAtIndex() {
    uint64_t blocks = 0;
    uint64_t trusted = 0;
    for (const RoutedWorker& worker : router_.workers) {
      for (const RoutedRank& rank : worker.ranks) {
        blocks += rank.blocks;
        trusted += rank.trust == "trusted" ? 1 : 0;
      }
    }
    if (ranks_ == 0 || blocks > 0 || trusted > 0 || router_.counters.requests < kEnoughRequests) {
      return;
    }
    Finding finding = Found(
        FindingId::kIndexEmpty, router_.url,
        fmt::format("After {:.0f} requests the index has no blocks", router_.counters.requests));
    finding.why = "The router routes by load alone";
    finding.evidence.push_back(
        fmt::format("{}: {} ranks, none of them trusted, 0 blocks", Page("/health"), ranks_));
    finding.gain = 1;
    book_.Add(std::move(finding));
  }

  // Engines that find what the router did not know of: it looks prompts up under other names than
  // they are stored, or what they store comes too late.
  void LookAtPredictions() {
    const RouterCounters& counters = router_.counters;
    constexpr double kMissed = 0.3;
    if (counters.actual_tokens < kEnoughTokens ||
        counters.predicted_tokens > kMissed * counters.actual_tokens) {
      return;
    }
    Finding finding =
        Found(FindingId::kIndexEmpty, router_.url,
              fmt::format(
                  "Engines found {:.0f} prompt tokens in their caches; the router predicted {:.0f}",
                  counters.actual_tokens, counters.predicted_tokens));
    finding.why =
        "Most hits are chance: the router's tokens differ from the engines', or KV events arrive "
        "too late";
    finding.evidence.push_back(
        Page("/metrics") +
        ": predicted and actual cached tokens, for requests whose engine reports them");
    finding.severity = Severity::kWarning;
    finding.gain = 1 - counters.predicted_tokens / counters.actual_tokens;
    finding.gain_basis = "share of the engines' hits that the router did not predict";
    book_.Add(std::move(finding));
  }

  void LookAtWaste() {
    const RouterCounters& counters = router_.counters;
    double wasted = 0;
    for (const auto& [cause, tokens] : counters.wasted) wasted += tokens;
    if (counters.prompt_tokens < kEnoughTokens || wasted < kWorthSaying * counters.prompt_tokens) {
      return;
    }
    const double share = wasted / counters.prompt_tokens;
    Finding finding = Found(
        FindingId::kWastedPrefill, router_.url,
        fmt::format(
            "{:.0f} % of all prompt tokens were prefilled although a worker has or had them cached",
            100 * share));
    finding.why = "Better placement, more KV memory or trusted KV events would save this prefill";
    std::vector<std::pair<double, std::string>> causes;
    for (const auto& [cause, tokens] : counters.wasted) causes.emplace_back(tokens, cause);
    std::ranges::sort(causes, std::greater<>());
    for (const auto& [tokens, cause] : causes) {
      if (tokens <= 0) continue;
      finding.evidence.push_back(
          fmt::format("{}: {:.0f} tokens for the cause {}", Page("/metrics"), tokens, cause));
    }
    finding.fixes = WasteRemedies(counters.wasted);
    finding.gain = share;
    finding.gain_basis = "counted by the router since it started";
    book_.Add(std::move(finding));
  }

  const RouterLook& router_;
  FindingBook& book_;
  size_t ranks_ = 0;
};

}  // namespace

void DiagnoseRouter(const RouterLook& router, FindingBook& book) {
  if (router.reached) RouterDiagnosis(router, book).Run();
}

void DiagnoseDynamo(const DynamoLook& dynamo, FindingBook& book) {
  if (!dynamo.reached) return;
  const auto found = [&](FindingId id, std::string message, std::string evidence, double gain,
                         std::optional<Severity> severity = {}) {
    Finding finding = MakeFinding(id, dynamo.url, std::move(message));
    finding.severity = severity.value_or(finding.severity);
    finding.evidence.push_back(std::move(evidence));
    finding.fixes = RemediesFor(id, {.router = RouterKind::kDynamo});
    finding.gain = gain;
    book.Add(std::move(finding));
  };
  const std::string metrics = fmt::format("GET {}/metrics", dynamo.url);
  if (dynamo.status == "not_ready") {
    found(FindingId::kUnhealthy, "The frontend has no ready worker",
          fmt::format("GET {}/health: {}", dynamo.url, dynamo.message), 1);
  }
  const auto share = dynamo.NotApplied();
  const bool not_applied = share && *share > kWorthSaying;
  if (not_applied) {
    std::string evidence = metrics + ": events by status:";
    for (const auto& [status, count] : dynamo.events_by_status) {
      evidence += fmt::format(" {} {:.0f}", status, count);
    }
    found(FindingId::kEventsNotApplied,
          fmt::format("{:.0f} % of the KV events could not be applied", 100 * *share),
          std::move(evidence), *share);
  }
  if (dynamo.hit_rate.count >= kEnoughRequests && dynamo.hit_rate.Mean() < 0.001) {
    // Where events are applied, nothing but the traffic may be the reason.
    found(FindingId::kIndexEmpty,
          not_applied ? "The router's predicted hit rate is 0"
                      : fmt::format("None of {:.0f} requests found cached blocks; traffic without "
                                    "follow-up turns looks the same",
                                    dynamo.hit_rate.count),
          fmt::format("{}: predicted hit rate 0, mean of {:.0f} requests", metrics,
                      dynamo.hit_rate.count),
          not_applied ? 1 : 0.3, not_applied ? Severity::kError : Severity::kWarning);
  }
  if (dynamo.source_mismatch_workers.value_or(0) > 0) {
    found(FindingId::kNoEvents,
          fmt::format("{:.0f} workers should publish KV events but have no event source",
                      *dynamo.source_mismatch_workers),
          metrics + ": kv_event_source_mismatch_workers", 0.9);
  }
}

}  // namespace fathom
