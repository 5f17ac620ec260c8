#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/doctor/live_diagnosis.h"
#include "diagnose/doctor/remedies.h"

namespace fathom {
namespace {

constexpr double kLateSeconds = 2;         // events later than that miss the next turn
constexpr double kFull = 0.95;             // of a cache
constexpr uint64_t kManyRemoved = 100;     // blocks while the doctor listened
constexpr uint64_t kStreamTurnover = 3;    // removals for each store
constexpr double kNoticeableShare = 0.02;  // of malformed batches

class WorkerDiagnosis {
 public:
  WorkerDiagnosis(const LookedAtWorker& worker, size_t fleet, FindingBook& book)
      : worker_(worker),
        look_(worker.look),
        share_(1.0 / static_cast<double>(fleet == 0 ? 1 : fleet)),
        fleet_(fleet),
        book_(book) {}

  void Run() {
    LookAtHealth();
    LookAtSettings();
    for (const StreamLook& stream : worker_.streams) LookAtStream(stream);
    LookAtTokens();
    LookAtLoad();
  }

 private:
  Finding Found(FindingId id, std::string message, std::string evidence) const {
    Finding finding = MakeFinding(id, look_.url, std::move(message));
    finding.evidence.push_back(std::move(evidence));
    finding.fixes = RemediesFor(id, {.engine = look_.report.engine});
    const bool error = finding.severity == Severity::kError;
    finding.gain = error ? share_ : 0.3 * share_;
    finding.gain_basis = fmt::format("one of {} workers", fleet_);
    return finding;
  }

  void LookAtHealth() {
    if (look_.healthy.value_or(true)) return;
    Finding finding = Found(FindingId::kUnhealthy, "The engine reports that it is not healthy",
                            fmt::format("GET {}/health", look_.url));
    finding.why = "Routers send it no requests, and its cached prefixes cannot be used";
    book_.Add(std::move(finding));
  }

  void LookAtSettings() {
    const EngineReport& report = look_.report;
    if (report.prefix_caching == false) {
      Finding finding = Found(FindingId::kPrefixCachingOff, "Prefix caching is off",
                              fmt::format("{} reports it", look_.url));
      finding.why = "Its prefixes are never reused, and it publishes no KV events";
      book_.Add(std::move(finding));
    }
    if (look_.events.how == PublishedEvents::How::kOff) {
      Finding finding =
          Found(look_.events.unlisted ? FindingId::kNoEvents : FindingId::kPublisherOff,
                "The engine publishes no KV events",
                fmt::format("{}: {}", look_.url, look_.events.problem));
      finding.why = "A router cannot see its cache and routes it by load";
      book_.Add(std::move(finding));
    }
    for (const EventSource& source : look_.events.sources) LookAtSource(source);
    if (report.event_block_size() == 1) {
      Finding finding = Found(FindingId::kPageSizeOne, "The page size is 1 token",
                              fmt::format("{} reports page size 1", look_.url));
      finding.why =
          "Every token is a separate event: streams and indexes are 16 times as large as with "
          "pages of 16 tokens";
      book_.Add(std::move(finding));
    }
  }

  void LookAtSource(const EventSource& source) {
    if (source.dials_out) {
      Finding finding =
          Found(FindingId::kEndpointConnects, "The event publisher connects instead of binding",
                fmt::format("{} publishes to {}", look_.url, source.endpoint));
      finding.why =
          "No process listens at that address, unless a router binds it (--kv-events-bind)";
      book_.Add(std::move(finding));
    }
    if (source.replay.empty() && look_.events.how == PublishedEvents::How::kStream) {
      Finding finding =
          Found(FindingId::kReplayMissing, "Lost KV events cannot be replayed",
                fmt::format("{} rank {} names no replay endpoint", look_.url, source.rank));
      finding.why = "After a gap or a reconnection the router must clear its index of the rank";
      finding.gain = 0.05 * share_;
      book_.Add(std::move(finding));
    }
  }

  void LookAtStream(const StreamLook& stream) {
    const std::string heard =
        fmt::format("{} rank {}, {:.0f} s at {}", look_.url, stream.source.rank, stream.seconds,
                    stream.source.endpoint);
    if (stream.listened && !stream.connected) {
      Finding finding = Found(FindingId::kNoEvents, "The publisher cannot be reached",
                              heard + ": never connected");
      finding.why =
          "If this machine cannot reach the publisher, a router on the same network cannot reach "
          "it either";
      book_.Add(std::move(finding));
    } else if (stream.listened && stream.batches == 0 && Worked()) {
      Finding finding =
          Found(FindingId::kNoEvents, "The engine served requests but published no KV events",
                heard + fmt::format(": {:.0f} prompt tokens, no batch",
                                    worker_.meanwhile->prompt_tokens.value_or(0)));
      finding.why = "A router cannot see its cache and routes it by load";
      book_.Add(std::move(finding));
    }
    if (stream.gaps > 0) {
      book_.Add(Found(FindingId::kEventGap,
                      fmt::format("{} batches of KV events are missing in {} gaps",
                                  stream.missing_batches, stream.gaps),
                      heard));
    }
    LookAtTurnover(stream, heard);
    if (stream.median_lag.value_or(0) > kLateSeconds) {
      Finding finding = Found(FindingId::kEventLag,
                              fmt::format("KV events arrive {:.1f} s late", *stream.median_lag),
                              heard + ", by the engine's clock; clocks that differ look the same");
      finding.why =
          "The next turn of a conversation arrives before the router has the events of the last "
          "turn";
      book_.Add(std::move(finding));
    }
    if (static_cast<double>(stream.malformed) >
        kNoticeableShare * static_cast<double>(stream.batches)) {
      book_.Add(Found(FindingId::kEventsNotApplied,
                      fmt::format("{} batches or events are malformed", stream.malformed),
                      heard + ": " + stream.first_problem));
    }
    LookAtForeignTokens(stream, heard);
  }

  void LookAtTurnover(const StreamLook& stream, const std::string& heard) {
    const uint64_t stored = std::max<uint64_t>(stream.stored_blocks, 1);
    if (stream.removed_blocks < kManyRemoved || stream.removed_blocks <= kStreamTurnover * stored)
      return;
    Finding finding = Found(FindingId::kChurn,
                            fmt::format("Evictions outnumber stores {} to 1 in the KV events",
                                        stream.removed_blocks / stored),
                            fmt::format("{}: {} blocks removed, {} stored", heard,
                                        stream.removed_blocks, stream.stored_blocks));
    finding.why =
        "The cache loses blocks faster than it gains any: prefixes are gone before their next "
        "turn, "
        "and an index cannot stabilize";
    book_.Add(std::move(finding));
  }

  bool Worked() const {
    return worker_.meanwhile && worker_.meanwhile->prompt_tokens.value_or(0) > 0;
  }

  void LookAtForeignTokens(const StreamLook& stream, const std::string& heard) {
    if (stream.foreign_tokens == 0) return;
    Finding finding = Found(FindingId::kTokensDiffer,
                            fmt::format("KV events name {} tokens that the tokenizer does not have",
                                        stream.foreign_tokens),
                            heard + fmt::format(": the largest id is {}", stream.largest_token));
    finding.why = "The engine's vocabulary differs from the files of --model-path";
    book_.Add(std::move(finding));
  }

  void LookAtTokens() {
    if (!worker_.tokens || !worker_.tokens->Differs()) return;
    for (const TokenComparison& c : worker_.tokens->comparisons) {
      if (!c.asked || c.equal) continue;
      Finding finding = Found(
          FindingId::kTokensDiffer,
          c.only_bos ? "Tokenizer and engine differ in the first token (BOS)"
                     : "The engine's tokens for a prompt differ from those of the model's files",
          fmt::format("{}: {} has {} tokens here and {} there; at position {} {} here, {} there",
                      look_.url, c.name, c.ours, c.theirs, c.position, Id(c.our_id, c.our_piece),
                      Id(c.their_id, c.their_piece)));
      finding.why = "Lookup keys differ from stored keys, so no cached prefix is found";
      book_.Add(std::move(finding));
    }
  }

  static std::string Id(std::optional<TokenId> id, const std::string& piece) {
    return id ? fmt::format("{} '{}'", *id, piece) : std::string("nothing");
  }

  void LookAtLoad() {
    const double preempted = worker_.meanwhile ? worker_.meanwhile->preemptions.value_or(0) : 0;
    if (preempted > 0) {
      Finding finding =
          Found(FindingId::kPreemptions,
                fmt::format("{:.0f} running requests were preempted during the check", preempted),
                fmt::format("{}: in {:.0f} s", look_.url, worker_.seconds));
      finding.why = "Their KV blocks are discarded and computed again";
      book_.Add(std::move(finding));
    }
    const double usage = look_.levels.cache_usage.value_or(0);
    if (usage >= kFull) {
      Finding finding =
          Found(FindingId::kMemoryPressure,
                fmt::format("Running requests hold {:.0f} % of the KV cache", 100 * usage),
                fmt::format("{}: {:.0f} running, {:.0f} waiting", look_.url,
                            look_.levels.running.value_or(0), look_.levels.waiting.value_or(0)));
      finding.why =
          "No memory is left for cached prefixes: a conversation's blocks are evicted as soon as "
          "its turn ends";
      book_.Add(std::move(finding));
    }
  }

  const LookedAtWorker& worker_;
  const WorkerLook& look_;
  const double share_;
  const size_t fleet_;
  FindingBook& book_;
};

}  // namespace

void DiagnoseWorker(const LookedAtWorker& worker, size_t fleet, FindingBook& book) {
  if (worker.look.reached) WorkerDiagnosis(worker, fleet, book).Run();
}

}  // namespace fathom
