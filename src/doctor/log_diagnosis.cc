#include "doctor/log_diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "doctor/remedies.h"
#include "doctor/trust_findings.h"

namespace fathom {
namespace {

// So many scheduler lines with an empty index are no accident of the first requests.
constexpr uint64_t kConvincing = 8;
// Removals of unknown blocks for each store without a parent, above which the cache itself turns
// over faster than any index could follow.
constexpr uint64_t kTurnover = 10;
constexpr uint64_t kManyRemovals = 100;
// Fewer refused events than that, where requests find what is cached, are races that end by
// themselves.
constexpr double kRefusedShare = 0.01;  // of requests that found something
constexpr uint64_t kRefusedRate = 10;   // a minute

constexpr auto kRefusals = std::to_array<LogKind>({LogKind::kParentMissing, LogKind::kRemoveMissing,
                                                   LogKind::kApplyFailed, LogKind::kStaleParent});

std::string Times(uint64_t n) { return n == 1 ? "once" : fmt::format("{} times", n); }

std::string Said(const ReadLog& log, LogKind kind) {
  const Tally& tally = log.facts.Of(kind);
  std::string text =
      fmt::format("{}:{}: \"{}\" {}", log.name, tally.first_line, Name(kind), Times(tally.lines));
  if (const auto rate = tally.PerMinute(); rate && tally.lines > 1) {
    text += fmt::format(", {:.0f} a minute", *rate);
  }
  if (tally.first && tally.last && tally.lines > 1) {
    text += fmt::format(", from {} to {}", ToText(*tally.first), ToText(*tally.last));
  }
  return text;
}

class LogDiagnosis {
 public:
  LogDiagnosis(const ReadLog& log, FindingBook& book) : log_(log), facts_(log.facts), book_(book) {}

  void Run() {
    LookAtClashes();
    LookAtTrust();
    LookAtIndex();
    LookAtRefusedEvents();
    LookAtSources();
    LookAtEngines();
  }

 private:
  Finding Found(FindingId id, std::string message) const {
    Finding finding = MakeFinding(id, "", std::move(message));
    finding.place = {.file = log_.name, .line = 0};
    return finding;
  }

  Finding Seen(FindingId id, LogKind kind, std::string message) const {
    Finding finding = Found(id, std::move(message));
    finding.place.line = static_cast<uint32_t>(facts_.Of(kind).first_line);
    finding.evidence.push_back(Said(log_, kind));
    finding.fixes = RemediesFor(id, {});
    return finding;
  }

  void LookAtClashes() {
    for (const auto& [clash, times] : facts_.clashes) {
      const bool among_workers = clash.kind == LogKind::kSizeConflict ||
                                 clash.kind == LogKind::kWorkerRefused ||
                                 clash.kind == LogKind::kOddRank;
      if (clash.kind == LogKind::kStaleReport) continue;  // events win, and all is well
      book_.Add(among_workers ? Conflict(clash, times) : Mismatch(clash, times));
    }
    if (facts_.Of(LogKind::kSourceIgnored)) {
      book_.Add(Seen(FindingId::kBlockSizeMismatch, LogKind::kSourceIgnored,
                     "The router ignores a source of KV events as incompatible"));
    }
  }

  static std::string SizeText(uint32_t size) {
    return size == 0 ? "a size that is not said" : fmt::format("{} tokens", size);
  }

  Finding Mismatch(const SizeClash& clash, uint64_t times) const {
    Finding finding = Found(
        FindingId::kBlockSizeMismatch,
        fmt::format("The router expects blocks of {}, the worker has {}{}", SizeText(clash.router),
                    clash.at_least ? "at least " : "", SizeText(clash.worker)));
    Describe(clash, times, finding);
    finding.why =
        "No block of such a worker enters the index: it is routed by load, and every "
        "follow-up turn is prefilled from its beginning";
    finding.gain = 1;
    finding.gain_basis = "nothing that such a worker holds can be found";
    finding.fixes =
        RemediesFor(FindingId::kBlockSizeMismatch,
                    {.router = IsFathoms(clash.kind) ? RouterKind::kFathom : RouterKind::kDynamo,
                     .engine_block_size = clash.at_least ? 0 : clash.worker,
                     .router_block_size = clash.router});
    return finding;
  }

  Finding Conflict(const SizeClash& clash, uint64_t times) const {
    Finding finding = Found(FindingId::kBlockSizeConflict,
                            fmt::format("A worker has blocks of {}, the others of its model {}",
                                        SizeText(clash.worker), SizeText(clash.router)));
    Describe(clash, times, finding);
    finding.why =
        "Blocks of different sizes have different keys: such a worker is refused, or "
        "found by nobody";
    finding.gain = 0.5;
    finding.fixes = RemediesFor(FindingId::kBlockSizeConflict, {});
    return finding;
  }

  static bool IsFathoms(LogKind kind) {
    return kind == LogKind::kSizeMismatch || kind == LogKind::kReportDiffers;
  }

  void Describe(const SizeClash& clash, uint64_t times, Finding& finding) const {
    const uint64_t line = facts_.Of(clash.kind).first_line;
    finding.subject = clash.subject;
    finding.place.line = static_cast<uint32_t>(line);
    finding.evidence.push_back(fmt::format(
        "{}:{}: \"{}\", router {}, worker {}{}, said {}", log_.name, line, Name(clash.kind),
        SizeText(clash.router), SizeText(clash.worker),
        clash.subject.empty() ? "" : fmt::format(" ({})", clash.subject), Times(times)));
  }

  void LookAtTrust() {
    for (const auto& [rank, record] : facts_.trust) {
      if (record.state != "doubted" && record.state != "excluded") continue;
      book_.Add(DoubtFinding({.source = fmt::format("{}:{}", log_.name, record.line),
                              .url = rank.first,
                              .rank = rank.second,
                              .cause = record.cause,
                              .evidence = record.evidence,
                              .fix = record.fix,
                              .cost_tokens = record.cost}));
    }
  }

  struct Refused {
    uint64_t stores = 0;
    uint64_t removals = 0;
    uint64_t all = 0;              // lines
    uint64_t peak_per_minute = 0;  // no less than it was
  };

  Refused RefusedEvents() const {
    Refused refused;
    for (const LogKind kind : kRefusals) {
      refused.all += facts_.Of(kind).lines;
      refused.peak_per_minute += facts_.Of(kind).peak_per_minute;
    }
    // What could not be applied may have been said in two lines.
    refused.stores =
        std::max(facts_.Of(LogKind::kParentMissing).lines + facts_.Of(LogKind::kStaleParent).lines,
                 facts_.Of(LogKind::kApplyFailed).lines);
    refused.removals = facts_.Of(LogKind::kRemoveMissing).lines;
    return refused;
  }

  void LookAtIndex() {
    const ReuseFacts& reuse = facts_.selections;
    const uint64_t refused = RefusedEvents().all;
    const bool empty = reuse.with_tree_size > 0 && reuse.tree_empty == reuse.with_tree_size;
    if (empty && (refused > 0 || reuse.with_tree_size >= kConvincing)) {
      book_.Add(IndexEmpty(LogKind::kSelection,
                           fmt::format("All {} scheduler lines have tree size 0: the router's "
                                       "index was empty at every request",
                                       reuse.with_tree_size)));
      return;
    }
    NothingCached(reuse, LogKind::kSelection, refused);
    NothingCached(facts_.completions, LogKind::kRouteCompleted, refused);
  }

  // Lines that do not tell the size of the index still tell whether anything was ever found.
  void NothingCached(const ReuseFacts& reuse, LogKind kind, uint64_t refused) {
    constexpr uint64_t kMany = 50;
    const bool none = reuse.counted >= kConvincing && reuse.none_cached == reuse.counted;
    if (!none || reuse.max_tree_size > 0) return;
    if (refused >= kConvincing) {
      book_.Add(IndexEmpty(
          kind, fmt::format("None of {} requests found a cached block on its worker, and {} KV "
                            "events were refused",
                            reuse.counted, refused)));
    } else if (reuse.counted >= kMany) {
      book_.Add(NeverAHit(kind, reuse.counted));
    }
  }

  Finding NeverAHit(LogKind kind, uint64_t requests) const {
    Finding finding = Seen(FindingId::kIndexEmpty, kind,
                           fmt::format("Nothing was found cached by any of {} requests; traffic "
                                       "without follow-up turns looks the same",
                                       requests));
    finding.severity = Severity::kWarning;
    finding.why =
        "Either no prompt begins like an earlier one, or the router does not know what is "
        "cached; the log does not tell which";
    finding.gain = 0.3;
    finding.gain_basis = "not known from the log alone; --worker URL --listen 30s tells";
    return finding;
  }

  Finding IndexEmpty(LogKind kind, std::string message) const {
    Finding finding = Seen(FindingId::kIndexEmpty, kind, std::move(message));
    finding.why =
        "The router chooses by load alone; follow-up turns land anywhere and are "
        "prefilled from their beginning";
    finding.gain = 1;
    finding.gain_basis = "no request is routed by what is cached";
    return finding;
  }

  void LookAtRefusedEvents() {
    const Refused refused = RefusedEvents();
    if (refused.all == 0 || IsNoise(refused)) return;
    Finding finding =
        Found(FindingId::kEventsNotApplied,
              fmt::format("The router could not apply KV events: {} stores without a known parent, "
                          "{} removals of unknown blocks",
                          refused.stores, refused.removals));
    for (const LogKind kind : kRefusals) {
      if (facts_.Of(kind)) finding.evidence.push_back(Said(log_, kind));
    }
    const bool stores = refused.stores > 0;
    finding.why = stores ? "A store that is refused takes all its descendants with it: whole "
                           "conversations become invisible to the router"
                         : "Engines evict blocks that the index does not have: stored before the "
                           "router began, lost on the way, or forgotten already. The removals "
                           "themselves do no harm";
    finding.gain = stores ? 0.5 : 0.1;
    finding.fixes = RemediesFor(FindingId::kEventsNotApplied, {});
    book_.Add(std::move(finding));
    if (refused.removals >= kManyRemovals &&
        refused.removals > kTurnover * std::max<uint64_t>(refused.stores, 1)) {
      book_.Add(Turnover(refused.stores, refused.removals));
    }
  }

  bool IsNoise(const Refused& refused) const {
    uint64_t hits = 0;
    for (const ReuseFacts* reuse : {&facts_.selections, &facts_.completions}) {
      hits = std::max(hits, reuse->counted - reuse->none_cached);
    }
    return static_cast<double>(refused.all) < kRefusedShare * static_cast<double>(hits) &&
           refused.peak_per_minute < kRefusedRate;
  }

  Finding Turnover(uint64_t stores, uint64_t removals) const {
    Finding finding =
        Seen(FindingId::kChurn, LogKind::kRemoveMissing,
             fmt::format("Evictions outnumber stores {} to 1 in the router's warnings",
                         removals / std::max<uint64_t>(stores, 1)));
    finding.why =
        "The cache turns over faster than an index can follow, or the index never held "
        "what is being evicted";
    finding.gain = 0.3;
    finding.gain_basis = "by the ratio of warnings alone; --listen measures it";
    return finding;
  }

  void LookAtSources() {
    Report(FindingId::kWorkersRejected, LogKind::kWorkersRejected, 0.8,
           "The router has rejected workers as incompatible; they idle while it reports healthy",
           "The first configuration to arrive wins, and the others get no requests");
    ReportStanding(FindingId::kNoEvents, LogKind::kPublisherDisabled, 0.9,
                   "A worker's publisher of KV events is disabled",
                   "Its cache is not known, so it is routed by load");
    ReportStanding(FindingId::kNoEvents, LogKind::kSourceNotObserved, 0.9,
                   "The router has not observed a source of KV events that it expects",
                   "Its cache is not known, so it is routed by load");
    ReportStanding(FindingId::kNoEvents, LogKind::kNoFeed, 0.9,
                   "A worker's KV events cannot be followed",
                   "Its cache is not known, so it is routed by load");
    ReportStanding(FindingId::kPrefixCachingOff, LogKind::kCachingOff, 0.9,
                   "Prefix caching is off on a worker", "Nothing that it computes is used again");
    Report(FindingId::kEventGap, LogKind::kNoReplay, 0.4,
           "KV events were lost, and there is no replay endpoint to ask for them again",
           "The index keeps what may be false, or forgets what is true");
    ReportStanding(FindingId::kEventGap, LogKind::kEventsLost, 0.4, "KV events were lost",
                   "What the rank held is forgotten until it is stored again");
    ReportStanding(FindingId::kUnhealthy, LogKind::kUnhealthy, 0.2,
                   "Workers failed their health checks",
                   "A worker that is not healthy gets no requests, and its cache is of no use");
  }

  void Report(FindingId id, LogKind kind, double gain, const char* message, const char* why) {
    if (!facts_.Of(kind)) return;
    Finding finding = Seen(id, kind, message);
    finding.why = why;
    finding.gain = gain;
    book_.Add(std::move(finding));
  }

  // What is over at the end of the log is no finding.
  void ReportStanding(FindingId id, LogKind kind, double gain, const char* message,
                      const char* why) {
    constexpr size_t kNamed = 3;
    std::vector<std::string> workers;
    uint64_t line = 0;
    size_t standing = 0;
    for (const auto& [complaint, at] : facts_.complaints) {
      if (complaint.kind != kind) continue;
      line = std::max(line, at);
      ++standing;
      if (!complaint.worker.empty() && workers.size() < kNamed)
        workers.push_back(NameOf(complaint));
    }
    if (standing == 0) return;
    Finding finding = Seen(id, kind, message);
    finding.place.line = static_cast<uint32_t>(line);
    if (!workers.empty()) {
      finding.evidence.push_back(fmt::format(
          "{}:{}: still so at the end of the log: {}{}", log_.name, line, fmt::join(workers, ", "),
          standing > kNamed ? fmt::format(" and {} more", standing - kNamed) : ""));
    }
    finding.why = why;
    finding.gain = gain;
    book_.Add(std::move(finding));
  }

  static std::string NameOf(const Complaint& complaint) {
    return complaint.rank ? fmt::format("{} rank {}", complaint.worker, *complaint.rank)
                          : complaint.worker;
  }

  void LookAtEngines() {
    const EngineFacts& engines = facts_.engines;
    if (engines.preemptions == 0) return;
    const bool sglang = facts_.Of(LogKind::kSglangRetraction).lines > 0;
    Finding finding = Found(FindingId::kPreemptions,
                            fmt::format("Engines took {} running requests off the GPU for want of "
                                        "KV memory",
                                        engines.preemptions));
    finding.place.line = static_cast<uint32_t>(engines.preemption_line);
    for (const LogKind kind : {LogKind::kSglangRetraction, LogKind::kVllmPreemption}) {
      if (facts_.Of(kind)) finding.evidence.push_back(Said(log_, kind));
    }
    if (finding.evidence.empty()) {
      finding.evidence.push_back(
          fmt::format("{}:{}: \"Preemptions\" in the engine's status line, the first of {}",
                      log_.name, engines.preemption_line, engines.preemptions));
    }
    finding.why =
        "What was computed for them is thrown away and computed again, and nothing is "
        "left for retention";
    finding.gain = 0.4;
    finding.fixes = RemediesFor(FindingId::kPreemptions,
                                {.engine = sglang ? EngineKind::kSglang : EngineKind::kVllm});
    book_.Add(std::move(finding));
  }

  const ReadLog& log_;
  const LogFacts& facts_;
  FindingBook& book_;
};

}  // namespace

void DiagnoseLog(const ReadLog& log, FindingBook& book) { LogDiagnosis(log, book).Run(); }

}  // namespace fathom
