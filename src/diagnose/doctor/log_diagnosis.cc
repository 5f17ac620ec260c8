#include "diagnose/doctor/log_diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/doctor/refused_events.h"
#include "diagnose/doctor/remedies.h"
#include "diagnose/doctor/trust_findings.h"
#include "diagnose/doctor/unread_findings.h"

namespace fathom {
namespace {

// So many scheduler lines with an empty index are no accident of the first requests.
constexpr uint64_t kConvincing = 8;
std::string Times(uint64_t n) { return n == 1 ? "once" : fmt::format("{} times", n); }

class LogDiagnosis {
 public:
  LogDiagnosis(const ReadLog& log, FindingBook& book) : log_(log), facts_(log.facts), book_(book) {}

  void Run() {
    LookAtClashes();
    LookAtTrust();
    LookAtPrompts();
    LookAtIndex();
    DiagnoseRefusedEvents(log_, book_);
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
    finding.evidence.push_back(LoggedText(log_, kind));
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
    return size == 0 ? "an unknown size" : fmt::format("{} tokens", size);
  }

  Finding Mismatch(const SizeClash& clash, uint64_t times) const {
    Finding finding =
        Found(FindingId::kBlockSizeMismatch,
              fmt::format("The router expects a block size of {}, the worker has {}{}",
                          SizeText(clash.router), clash.at_least ? "at least " : "",
                          SizeText(clash.worker)));
    Describe(clash, times, finding);
    finding.why =
        "No block of such a worker enters the index: it is routed by load, and every follow-up "
        "turn is prefilled from its first token";
    finding.gain = 1;
    finding.gain_basis = "no block that such a worker caches can be found";
    finding.fixes =
        RemediesFor(FindingId::kBlockSizeMismatch,
                    {.router = IsFathoms(clash.kind) ? RouterKind::kFathom : RouterKind::kDynamo,
                     .engine_block_size = clash.at_least ? 0 : clash.worker,
                     .router_block_size = clash.router,
                     .divided = IsDivided(clash)});
    return finding;
  }

  Finding Conflict(const SizeClash& clash, uint64_t times) const {
    Finding finding =
        Found(FindingId::kBlockSizeConflict,
              fmt::format("A worker has a block size of {}, the others of its model {}",
                          SizeText(clash.worker), SizeText(clash.router)));
    Describe(clash, times, finding);
    finding.why =
        "Blocks of different sizes have different keys: such a worker is refused, or its blocks "
        "are never found";
    finding.gain = 0.5;
    finding.fixes = RemediesFor(FindingId::kBlockSizeConflict, {});
    return finding;
  }

  // Whether the log shows workers of another size than this one: in other clashes, or trusted ones.
  bool IsDivided(const SizeClash& clash) const {
    const bool clashes = std::ranges::any_of(facts_.clashes, [&](const auto& other) {
      return !other.first.at_least && other.first.worker != 0 && other.first.worker != clash.worker;
    });
    return clashes || std::ranges::any_of(facts_.trust, [&](const auto& rank) {
             const TrustRecord& record = rank.second;
             return record.state == "trusted" && record.block_size == clash.router;
           });
  }

  static bool IsFathoms(LogKind kind) {
    return kind == LogKind::kSizeMismatch || kind == LogKind::kReportDiffers;
  }

  void Describe(const SizeClash& clash, uint64_t times, Finding& finding) const {
    const uint64_t line = facts_.Of(clash.kind).first_line;
    finding.subject = clash.subject;
    finding.place.line = static_cast<uint32_t>(line);
    finding.evidence.push_back(fmt::format(
        "{}:{}: \"{}\", router {}, worker {}{}, logged {}", log_.name, line, Name(clash.kind),
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

  // What is over at the end of the log is no finding.
  void LookAtPrompts() {
    for (const auto& [model, record] : facts_.unread) {
      if (!record.standing) continue;
      Finding finding = UnreadFinding({.source = fmt::format("{}:{}", log_.name, record.line),
                                       .model = model,
                                       .unread = record.unread,
                                       .reason = record.reason,
                                       .route = record.route,
                                       .engine = record.engine,
                                       .fix = record.fix,
                                       .cost_tokens = record.cost});
      finding.place = {.file = log_.name, .line = static_cast<uint32_t>(record.line)};
      if (record.times > 1) finding.evidence.push_back(HistoryOf(record));
      book_.Add(std::move(finding));
    }
  }

  std::string HistoryOf(const UnreadRecord& record) const {
    const std::string when =
        record.first && record.last
            ? fmt::format(" from {} to {}", ToText(*record.first), ToText(*record.last))
            : std::string();
    return fmt::format("{}:{}: logged {}{}; cost_tokens rose from {} to {}", log_.name, record.line,
                       Times(record.times), when, record.first_cost, record.cost);
  }

  void LookAtIndex() {
    const ReuseFacts& reuse = facts_.selections;
    const uint64_t refused = CountRefused(facts_).all;
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
                           fmt::format("None of {} requests found cached blocks; traffic without "
                                       "follow-up turns looks the same",
                                       requests));
    finding.severity = Severity::kWarning;
    finding.why =
        "Either no prompt shares a prefix with an earlier one, or the router cannot see the "
        "caches; the log does not show which";
    finding.gain = 0.3;
    finding.gain_basis = "unknown from the log alone; measure with --worker URL --listen 30s";
    return finding;
  }

  Finding IndexEmpty(LogKind kind, std::string message) const {
    Finding finding = Seen(FindingId::kIndexEmpty, kind, std::move(message));
    finding.why =
        "The router routes by load alone; follow-up turns go to any worker and are prefilled from "
        "their first token";
    finding.gain = 1;
    finding.gain_basis = "no request is routed by cached prefixes";
    return finding;
  }

  void LookAtSources() {
    Report(
        FindingId::kWorkersRejected, LogKind::kWorkersRejected, 0.8,
        "The router has rejected workers as incompatible; they are idle while it reports healthy",
        "The router uses the first configuration it receives; workers with another one get no "
        "requests");
    ReportStanding(FindingId::kNoEvents, LogKind::kPublisherDisabled, 0.9,
                   "A worker's KV event publisher is disabled",
                   "The router cannot see its cache, so it is routed by load");
    ReportStanding(FindingId::kNoEvents, LogKind::kSourceNotObserved, 0.9,
                   "The router expects a source of KV events and has not seen it",
                   "The router cannot see its cache, so it is routed by load");
    ReportStanding(FindingId::kNoEvents, LogKind::kNoFeed, 0.9,
                   "The router cannot receive a worker's KV events",
                   "The router cannot see its cache, so it is routed by load");
    Report(FindingId::kEventGap, LogKind::kNoReplay, 0.4,
           "KV events were lost, and there is no replay endpoint to recover them",
           "The index has stale entries, or misses blocks that are cached");
    ReportStanding(FindingId::kEventGap, LogKind::kEventsLost, 0.4, "KV events were lost",
                   "The rank's index entries are cleared until its blocks are stored again");
    ReportStanding(FindingId::kUnhealthy, LogKind::kUnhealthy, 0.2,
                   "Workers failed their health checks",
                   "An unhealthy worker gets no requests, and its cached prefixes cannot be used");
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
      finding.evidence.push_back(
          fmt::format("{}:{}: not resolved at the end of the log: {}{}", log_.name, line,
                      fmt::join(workers, ", "),
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
    Finding finding =
        Found(FindingId::kPreemptions,
              fmt::format("Engines preempted {} running requests because KV memory is short",
                          engines.preemptions));
    finding.place.line = static_cast<uint32_t>(engines.preemption_line);
    for (const LogKind kind : {LogKind::kSglangRetraction, LogKind::kVllmPreemption}) {
      if (facts_.Of(kind)) finding.evidence.push_back(LoggedText(log_, kind));
    }
    if (finding.evidence.empty()) {
      finding.evidence.push_back(
          fmt::format("{}:{}: \"Preemptions\" in the engine's status line, the first of {}",
                      log_.name, engines.preemption_line, engines.preemptions));
    }
    finding.why =
        "Their KV blocks are discarded and computed again, and no memory is left for cached "
        "prefixes";
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
