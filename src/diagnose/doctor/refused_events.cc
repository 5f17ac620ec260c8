#include "diagnose/doctor/refused_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "diagnose/doctor/remedies.h"

namespace fathom {
namespace {

// So many refused stores are no accident.
constexpr uint64_t kManyStores = 8;
// Removals of unknown blocks for each store without a parent, above which the cache itself turns
// over faster than any index could follow.
constexpr uint64_t kTurnover = 3;
constexpr uint64_t kManyRemovals = 100;
// Fewer refused events than that, where requests find what is cached, are races that end by
// themselves.
constexpr double kRefusedShare = 0.01;  // of requests that found something
constexpr uint64_t kRefusedRate = 10;   // a minute

constexpr auto kRefusals = std::to_array<LogKind>({LogKind::kParentMissing, LogKind::kRemoveMissing,
                                                   LogKind::kApplyFailed, LogKind::kStaleParent});

class RefusedDiagnosis {
 public:
  RefusedDiagnosis(const ReadLog& log, FindingBook& book)
      : log_(log), facts_(log.facts), book_(book) {}

  void Run() {
    const RefusedEvents refused = CountRefused(facts_);
    if (refused.all == 0 || IsNoise(refused)) return;
    book_.Add(RefusedFinding(refused));
    if (refused.removals >= kManyRemovals &&
        refused.removals > kTurnover * std::max<uint64_t>(refused.stores, 1)) {
      book_.Add(Turnover(refused.stores, refused.removals));
    }
  }

 private:
  Finding Found(FindingId id, std::string message) const {
    Finding finding = MakeFinding(id, "", std::move(message));
    finding.place = {.file = log_.name, .line = 0};
    return finding;
  }

  Finding RefusedFinding(const RefusedEvents& refused) const {
    Finding finding =
        Found(FindingId::kEventsNotApplied,
              fmt::format("The router could not apply KV events: {} stores without a known parent, "
                          "{} removals of unknown blocks",
                          refused.stores, refused.removals));
    for (const LogKind kind : kRefusals) {
      if (facts_.Of(kind)) finding.evidence.push_back(LoggedText(log_, kind));
    }
    finding.why = WhyRefused(refused);
    finding.gain = refused.stores > 0 ? 0.5 : 0.1;
    if (IsIncident(refused)) {
      finding.severity = Severity::kError;
      finding.gain = 1;
      finding.gain_basis = "no request is known to have found a cached block";
    }
    finding.fixes = RemediesFor(FindingId::kEventsNotApplied, {.router = RouterKind::kDynamo});
    return finding;
  }

  // Stores that are refused one after the other, and no request that found anything.
  bool IsIncident(const RefusedEvents& refused) const {
    return refused.stores >= kManyStores && Hits() == 0;
  }

  std::string WhyRefused(const RefusedEvents& refused) const {
    if (refused.stores == 0) {
      return "Engines evict blocks that the index does not have: they were stored before the "
             "router "
             "started, their events were lost, or the index dropped them. The removals themselves "
             "do no harm";
    }
    std::string why =
        "When a store is refused, all its descendants are refused too: the router does not see "
        "whole conversations";
    if (IsIncident(refused)) {
      why +=
          ". The usual cause is a block size of the router that is not the engine's, which these "
          "lines do not mention: then nothing enters the index, and every request is routed by "
          "load";
    }
    return why;
  }

  uint64_t Hits() const {
    uint64_t hits = 0;
    for (const ReuseFacts* reuse : {&facts_.selections, &facts_.completions}) {
      hits = std::max(hits, reuse->counted - reuse->none_cached);
    }
    return hits;
  }

  bool IsNoise(const RefusedEvents& refused) const {
    return static_cast<double>(refused.all) < kRefusedShare * static_cast<double>(Hits()) &&
           refused.peak_per_minute < kRefusedRate;
  }

  Finding Turnover(uint64_t stores, uint64_t removals) const {
    Finding finding =
        Found(FindingId::kChurn,
              fmt::format("Evictions outnumber stores {} to 1 in the router's warnings",
                          removals / std::max<uint64_t>(stores, 1)));
    finding.place.line = static_cast<uint32_t>(facts_.Of(LogKind::kRemoveMissing).first_line);
    finding.evidence.push_back(LoggedText(log_, LogKind::kRemoveMissing));
    finding.fixes = RemediesFor(FindingId::kChurn, {});
    finding.why =
        "The cache is replaced faster than an index can follow, or the index never had the evicted "
        "blocks";
    finding.gain = 0.3;
    finding.gain_basis = "estimated from the ratio of warnings; --listen measures it";
    return finding;
  }

  const ReadLog& log_;
  const LogFacts& facts_;
  FindingBook& book_;
};

}  // namespace

RefusedEvents CountRefused(const LogFacts& facts) {
  RefusedEvents refused;
  for (const LogKind kind : kRefusals) {
    refused.all += facts.Of(kind).lines;
    refused.peak_per_minute += facts.Of(kind).peak_per_minute;
  }
  // What could not be applied may have been said in two lines.
  refused.stores =
      std::max(facts.Of(LogKind::kParentMissing).lines + facts.Of(LogKind::kStaleParent).lines,
               facts.Of(LogKind::kApplyFailed).lines);
  refused.removals = facts.Of(LogKind::kRemoveMissing).lines;
  return refused;
}

void DiagnoseRefusedEvents(const ReadLog& log, FindingBook& book) {
  RefusedDiagnosis(log, book).Run();
}

std::string LoggedText(const ReadLog& log, LogKind kind) {
  const Tally& tally = log.facts.Of(kind);
  std::string text = fmt::format("{}:{}: \"{}\" {}", log.name, tally.first_line, Name(kind),
                                 tally.lines == 1 ? "once" : fmt::format("{} times", tally.lines));
  if (const auto rate = tally.PerMinute(); rate && tally.lines > 1) {
    text += fmt::format(", {:.0f} a minute", *rate);
  }
  if (tally.first && tally.last && tally.lines > 1) {
    text += fmt::format(", from {} to {}", ToText(*tally.first), ToText(*tally.last));
  }
  return text;
}

}  // namespace fathom
