// How many tokens does a block have, who agrees, and who is refused?
//
// A pure state machine: told who joins and leaves, what workers report, what their events prove and
// what time it is, it decides who may be routed to, whose blocks may be indexed, and what has to be
// said. It knows no locks, no sockets and no log; BlockSizes carries out what it decides.
//
// Sizes are agreed per model. What is believed, strongest first: a stored event, the engine's own
// report, the operator's setting; a setting is obeyed all the same, and checked against the others.
//
//   start   until every worker that was there at the beginning has reported or failed, or the wait
//           is over. Nobody is admitted before. Sizes that differ then: refused_to_start().
//   later   a model keeps its size as long as somebody who was accepted has it, even while that one
//           is away for a while. Who differs is not admitted; who was accepted by a report that
//           events prove wrong may change the size.
//   report  one that its own worker's events contradict is not believed of workers of the same
//           kind either, until somebody's events confirm it: a stale label, or context parallel.
//
// With `mixed` every size is a cohort and nobody is refused; with `configured` nobody is refused
// either, but only blocks of that size are indexed.
//
// Threads  One.
// Memory   Per worker at most kMostModels models, kMostRanks ranks and kMostCounts counters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "fleet/engine_report.h"
#include "fleet/fleet.h"
#include "fleet/trust.h"

namespace fathom {

struct BlockSizeRules {
  uint32_t configured = 0;  // 0: found out
  bool mixed = false;
  Duration wait = std::chrono::seconds(10);
};

enum class SizeSource : uint8_t { kNone, kConfigured, kReport, kEvents };
std::string_view Name(SizeSource source);

// Something that an operator should hear, once.
struct SizeRemark {
  enum class Kind : uint8_t {
    kAgreed,           // `model` has `size` now, from `source`, on `workers` of them
    kCohort,           // likewise, beside others (mixed)
    kSilent,           // `worker` answers, but does not say its size
    kReportDiffers,    // `worker` reports `size`, `other` is configured
    kMismatch,         // events of `rank` say `size`, `other` is configured
    kOddRank,          // events of `rank` say `size`, the model has `other`
    kStaleReport,      // events of `rank` say `size`, the report says `other`
    kRefused,          // `worker` has `size`, the model `other`
    kReadmitted,       // it agrees now
    kConflictAtStart,  // of `model`: `claims`
    kTrusted,          // `rank` is trusted with `size`
  };
  struct Claim {
    std::string url;
    EngineKind engine = EngineKind::kUnknown;
    uint32_t size = 0;
    SizeSource source = SizeSource::kNone;
    bool operator==(const Claim&) const = default;
  };

  Kind kind{};
  WorkerId worker{};
  std::string url;
  EngineKind engine = EngineKind::kUnknown;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint32_t other = 0;
  bool at_least = false;  // `size` is not more than a lower bound
  SizeSource source = SizeSource::kNone;
  size_t workers = 0;
  std::string model;
  std::vector<Claim> claims = {};
};

class BlockSizeAgreement {
 public:
  static constexpr uint32_t kMostRanks = EngineReport::kMaxRanks;
  static constexpr size_t kMostCounts = 64;
  static constexpr size_t kMostModels = 16;  // of a worker; more are names of the same
  // How long somebody who was accepted keeps its vote while it is away.
  static constexpr Duration kLongAway = std::chrono::minutes(1);
  // How often a mismatch of a rank that connects again and again is said before it is said rarely.
  static constexpr uint32_t kSaidFreely = 5;
  static constexpr Duration kSaidRarely = std::chrono::minutes(1);

  BlockSizeAgreement(const BlockSizeRules& rules, TimePoint now)
      : rules_(rules), deadline_(now + rules.wait) {}

  void Join(WorkerId id, std::string url, TimePoint now);
  void Leave(WorkerId id, TimePoint now);
  // It serves these, adapters left out.
  void Serves(WorkerId id, std::vector<std::string> models, TimePoint now);
  // It is well, and is being asked what it can do.
  void Answered(WorkerId id, TimePoint now);
  // What it said; a size of 0 means that it cannot say, or takes nothing back of what it has said.
  void Reported(WorkerId id, EngineKind engine, uint32_t size, TimePoint now);
  // It does not answer, now or any more. Its next report begins anew.
  void Failed(WorkerId id, TimePoint now);
  // Somebody follows the events of that rank.
  void Followed(WorkerId id, uint32_t rank, TimePoint now);
  // A stored event of the rank says so. True: its blocks may be indexed.
  bool Proven(WorkerId id, uint32_t rank, uint32_t size, TimePoint now);
  // Blocks of the rank have more tokens than are configured; how many is not known yet.
  void Exceeded(WorkerId id, uint32_t rank, uint32_t at_least, TimePoint now);
  // What was proven holds no longer: another connection, perhaps another process.
  void Reset(WorkerId id, uint32_t rank, TimePoint now);
  // The stream of one rank turned out to be another's.
  void Renumbered(WorkerId id, uint32_t from, uint32_t to, TimePoint now);
  // `more`: workers of the start are still being looked for.
  void Tick(TimePoint now, bool more = false);

  bool MayIndex(WorkerId id, uint32_t size) const;
  // A stored event whose size is not the one in use.
  void CountMismatch(WorkerId id, uint32_t size);

  bool starting() const { return starting_; }
  bool refused_to_start() const { return refused_to_start_; }
  // Workers that have not said yet what they can do.
  std::vector<std::string> awaited() const;

  Membership MembershipOf(WorkerId id) const;
  struct Known {
    uint32_t size = 0;
    SizeSource source = SizeSource::kNone;
  };
  // Of a rank, or what is known of the worker as a whole where the rank has proven nothing.
  Known SizeOf(WorkerId id, uint32_t rank) const;
  Known SizeOf(WorkerId id) const;
  // What the worker should have; 0 if nobody knows, or every size will do.
  uint32_t ExpectedOf(WorkerId id) const;
  Trust TrustOf(WorkerId id, uint32_t rank) const;
  // Mismatches by (size in use, size of the worker).
  using Counts = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;
  const Counts& MismatchesOf(WorkerId id) const;

  // What happened since the last call.
  struct Outcome {
    std::vector<SizeRemark> remarks;
    std::vector<std::pair<WorkerId, Membership>> admissions;
    std::vector<std::pair<WorkerId, uint32_t>> trust;  // ranks whose trust changed
    bool anything() const { return !remarks.empty() || !admissions.empty() || !trust.empty(); }
  };
  Outcome Take() { return std::exchange(outcome_, {}); }

 private:
  struct RankState {
    uint32_t size = 0;        // proven in this connection
    uint32_t at_least = 0;    // more than is configured, until the size is proven
    uint32_t times_said = 0;  // that it is doubted, or trusted
    TimePoint last_said{};
    uint32_t trusted_size = 0;  // with which it was last said to be trusted
    Trust trust;
  };
  enum class Presence : uint8_t { kAwaited, kHere, kAway };
  struct Peer {
    WorkerId id;
    std::string url;
    EngineKind engine = EngineKind::kUnknown;
    std::vector<std::string> models;
    Presence presence = Presence::kAwaited;
    std::optional<TimePoint> answered;  // while it is awaited: since when it is well
    TimePoint away_since{};
    Membership admission = Membership::kHeld;
    bool settled = false;        // its size was the model's when it was admitted, or became it
    uint32_t report = 0;         // 0: it does not say
    bool report_counts = false;  // it was made by the process that is there now
    uint32_t remembered = 0;     // proven before the last reset
    uint32_t stale = 0;          // the report that its events contradicted
    uint32_t differing = 0;      // the report that was said to differ from the setting
    bool silence_said = false;
    std::map<uint32_t, RankState> ranks;
    Counts mismatches;
  };
  struct Model {
    uint32_t size = 0;
    std::vector<uint32_t> cohorts;  // that were said
    uint32_t times_said = 0;        // that it has a size
    TimePoint last_said{};
    std::vector<Peer*> peers;
  };
  struct Votes;

  bool fixed() const { return rules_.configured != 0; }
  bool agrees() const { return !fixed() && !rules_.mixed; }
  Peer* Find(WorkerId id);
  const Peer* Find(WorkerId id) const;
  static uint32_t ProvenBy(const Peer& peer);
  static bool Believable(const Model& model, const Peer& peer);
  uint32_t ClaimOf(const Model& model, const Peer& peer) const;
  std::vector<Votes> CountVotes(const Model& model) const;

  void Touch(Peer& peer, TimePoint now);
  void TouchModels(const std::vector<std::string>& names, TimePoint now);
  void EndStart(TimePoint now);
  bool FindConflicts();
  void Choose(const std::string& name, Model& model, TimePoint now);
  void NameCohorts(const std::string& name, Model& model);
  void Judge(Peer& peer, TimePoint now);
  // The size of a model that the worker must not differ from, but does; 0 if all is well.
  uint32_t ConflictOf(const Peer& peer) const;
  void Admit(Peer& peer, Membership admission);
  void Expect(Peer& peer, TimePoint now);
  static void Forget(Peer& peer, RankState& rank);
  static bool MaySay(RankState& rank, TimePoint now);
  void SayDoubted(Peer& peer, uint32_t number, RankState& rank, TimePoint now);
  void Announce(SizeRemark remark, const Model& model);
  void NoticeSilence(Peer& peer);
  void NoticeStaleReport(Peer& peer, uint32_t rank, uint32_t size);
  void SetTrust(Peer& peer, TimePoint now);
  Trust TrustNow(const Peer& peer, const RankState& rank) const;
  void Detach(Peer& peer);
  SizeRemark About(SizeRemark::Kind kind, const Peer& peer) const;

  const BlockSizeRules rules_;
  const TimePoint deadline_;
  bool starting_ = true;
  bool refused_to_start_ = false;
  std::map<WorkerId, Peer> peers_;  // addresses stay
  std::map<std::string, Model> models_;
  Outcome outcome_;
};

}  // namespace fathom
