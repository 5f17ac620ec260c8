// How many tokens does a block have, which workers agree, and which are refused?
//
// A pure state machine. Input: joins and leaves, the workers' reports, sizes proven by events, and
// the time. Output: which workers may be routed to, whose blocks may be indexed, and the remarks to
// log. It has no locks, sockets or log; BlockSizes applies its decisions.
//
// Sizes are agreed per model. Sources, strongest first: a stored event, the engine's own report,
// the operator's setting. An explicit setting is still used, and checked against the others.
//
//   start   lasts until every initial worker has reported or failed, or the wait is over. Once one
//           has reported, the others have kGrace. No worker is admitted before. If sizes differ
//           then: refused_to_start().
//   later   a model keeps its size as long as an accepted worker has it, even while that worker is
//           away for up to kLongAway. A worker that differs is not admitted. A worker that was
//           accepted by a report that its events prove wrong may change the size.
//   report  one that its own worker's events contradict is not used for workers of the same engine
//           either, until a worker's events confirm it: a stale label, or context parallelism.
//
// With `mixed` every size is a cohort and no worker is refused. With `configured` no worker is
// refused either, but only blocks of that size are indexed.
//
// Threads  One.
// Memory   Per worker at most kMostModels models, kMostRanks ranks and kMostCounts counters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/repeat_limit.h"
#include "engine/engine_report.h"
#include "router/fleet/block_size_votes.h"
#include "router/fleet/fleet.h"
#include "router/fleet/trust.h"

namespace fathom {

// The setting of the block size that is in force, in the operator's spelling.
struct SizeSetting {
  std::string name = "--kv-cache-block-size";  // a flag, a variable, or a key of the YAML file
  std::string place;                           // of a key: "config.yaml:12"
};

struct BlockSizeRules {
  uint32_t configured = 0;  // 0: learned from the workers
  bool mixed = false;
  Duration wait = std::chrono::seconds(10);
  SizeSetting setting = {};  // where `configured` was set
};

enum class SizeSource : uint8_t { kNone, kConfigured, kReport, kEvents };
std::string_view Name(SizeSource source);

// A fact to log for the operator, once.
struct SizeRemark {
  enum class Kind : uint8_t {
    kAgreed,           // `model` now has `size`, from `source`, on `workers` workers
    kCohort,           // likewise, as one of several sizes (mixed)
    kSilent,           // `worker` answers, but does not report its size
    kReportDiffers,    // `worker` reports `size`, `other` is configured
    kMismatch,         // events of `rank` have `size`, `other` is configured
    kOddRank,          // events of `rank` have `size`, the model has `other`
    kStaleReport,      // events of `rank` have `size`, the report has `other`
    kRefused,          // `worker` has `size`, the model `other`
    kReadmitted,       // a refused worker now agrees
    kConflictAtStart,  // `claims` about `model` differ
    kTrusted,          // `rank` is trusted with `size`
  };
  struct Claim {
    std::string url;
    EngineKind engine = EngineKind::kUnknown;
    uint32_t size = 0;
    SizeSource source = SizeSource::kNone;
    bool operator==(const Claim&) const = default;
  };

  // Whether workers elsewhere in the fleet have another size than `size`: a router that is set to
  // `size` then loses those.
  enum class Others : uint8_t { kAgree, kDifferByModel, kDiffer };

  Kind kind{};
  WorkerId worker{};
  std::string url;
  EngineKind engine = EngineKind::kUnknown;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint32_t other = 0;
  bool at_least = false;  // `size` is only a lower bound
  SizeSource source = SizeSource::kNone;
  size_t workers = 0;
  std::string model;
  std::vector<Claim> claims = {};
  Others others = Others::kAgree;
  SizeSetting setting = {};  // that `other` comes from, of kReportDiffers and kMismatch
};

class BlockSizeAgreement {
 public:
  static constexpr uint32_t kMostRanks = EngineReport::kMaxRanks;
  static constexpr size_t kMostCounts = 64;
  static constexpr size_t kMostModels = 16;  // per worker; further names are ignored
  // How long an accepted worker keeps its vote while it does not answer.
  static constexpr Duration kLongAway = std::chrono::minutes(1);
  static constexpr Duration kCalm = std::chrono::seconds(1);
  // How long the start waits for the other workers once one has reported its size.
  static constexpr Duration kGrace = std::chrono::seconds(1);
  // For remarks about a rank that connects again and again, and about a size that changes.
  static constexpr RepeatRule kRepeats{.freely = 5};

  BlockSizeAgreement(const BlockSizeRules& rules, TimePoint now)
      : rules_(rules), start_ends_(now + rules.wait) {}

  void Join(WorkerId id, std::string url, TimePoint now);
  void Leave(WorkerId id, TimePoint now);
  // The worker serves these models, adapters excluded.
  void Serves(WorkerId id, std::vector<std::string> models, TimePoint now);
  // The worker passed a health check, and its capability probe is pending.
  void Answered(WorkerId id, TimePoint now);
  // The worker's report. A size of 0 means that it reports none; an earlier report stays valid. Of
  // a doubted worker only an interview counts: other reports may still be its predecessor's.
  enum class Learned : uint8_t { kInPassing, kInInterview };
  void Reported(WorkerId id, EngineKind engine, uint32_t size, TimePoint now,
                Learned learned = Learned::kInInterview);
  // The worker does not answer. Its next report starts the contract again.
  void Failed(WorkerId id, TimePoint now);
  // Another process may be at its address now: no requests until it has been interviewed again.
  // Workers are doubted only where sizes must agree. A doubt during an interview, or within kCalm
  // after it, counts later: some servers close connections all the time.
  void Doubt(WorkerId id, TimePoint now);
  // The router follows the events of that rank.
  void Followed(WorkerId id, uint32_t rank, TimePoint now);
  // A stored event of the rank has this size. True: its blocks may be indexed.
  bool Proven(WorkerId id, uint32_t rank, uint32_t size, TimePoint now);
  // Blocks of the rank have more tokens than configured; the exact size is not known yet.
  void Exceeded(WorkerId id, uint32_t rank, uint32_t at_least, TimePoint now);
  // The proven size is no longer valid: a new connection, perhaps to a new process.
  void Reset(WorkerId id, uint32_t rank, TimePoint now);
  // The stream of rank `from` turned out to belong to rank `to`.
  void Renumbered(WorkerId id, uint32_t from, uint32_t to, TimePoint now);
  // `more`: discovery of the initial workers is not complete.
  void Tick(TimePoint now, bool more = false);

  bool MayIndex(WorkerId id, uint32_t size) const;
  // Counts a stored event whose size is not the one in use.
  void CountMismatch(WorkerId id, uint32_t size);

  bool starting() const { return starting_; }
  bool refused_to_start() const { return refused_to_start_; }
  // URLs of the workers that have not reported yet.
  std::vector<std::string> awaited() const;

  Membership MembershipOf(WorkerId id) const;
  struct Known {
    uint32_t size = 0;
    SizeSource source = SizeSource::kNone;
  };
  // The size of a rank, or the worker's size if the rank has proven none.
  Known SizeOf(WorkerId id, uint32_t rank) const;
  Known SizeOf(WorkerId id) const;
  // The size that the worker should have; 0 if unknown, or if any size is accepted.
  uint32_t ExpectedOf(WorkerId id) const;
  Trust TrustOf(WorkerId id, uint32_t rank) const;
  // Whether another worker is known to have another size than `size`, which this one has.
  SizeRemark::Others OthersOf(WorkerId id, uint32_t size) const;
  // Mismatches by (size in use, size of the worker).
  using Counts = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;
  const Counts& MismatchesOf(WorkerId id) const;

  // Changes since the last call.
  struct Outcome {
    std::vector<SizeRemark> remarks;
    std::vector<std::pair<WorkerId, Membership>> admissions;
    std::vector<std::pair<WorkerId, uint32_t>> trust;  // ranks whose trust changed
    std::vector<WorkerId> interviews;                  // that are needed
    bool anything() const { return !remarks.empty() || !admissions.empty() || !trust.empty(); }
  };
  Outcome Take() { return std::exchange(outcome_, {}); }

 private:
  struct RankState {
    uint32_t size = 0;          // proven in this connection
    uint32_t at_least = 0;      // a size above the configured one, until proven
    RepeatLimit lines;          // remarks that it is doubted or trusted
    uint32_t trusted_size = 0;  // size in the last kTrusted remark
    Trust trust;
  };
  enum class Presence : uint8_t { kAwaited, kHere, kAway };
  struct Peer {
    WorkerId id;
    std::string url;
    EngineKind engine = EngineKind::kUnknown;
    std::vector<std::string> models;
    Presence presence = Presence::kAwaited;
    std::optional<TimePoint> answered;  // while awaited: since when it is healthy
    TimePoint away_since{};
    Membership admission = Membership::kHeld;
    bool doubted = false;        // while awaited: it was here before
    TimePoint calm_until{};      // is not doubted before
    bool doubt_waits = false;    // until then
    bool settled = false;        // admitted with a known size that matches the model's
    uint32_t report = 0;         // 0: none
    bool report_counts = false;  // the report is from the current process
    uint32_t remembered = 0;     // proven before the last reset
    uint32_t stale = 0;          // the report that its events contradict
    uint32_t differing = 0;      // the report in the last kReportDiffers remark
    bool silence_said = false;
    std::pair<uint32_t, uint32_t> refusal_said;  // its size and the agreed one; zeros: none
    std::map<uint32_t, RankState> ranks;
    Counts mismatches;
    Ballot ballot;  // as its models have it
  };
  struct Model {
    uint32_t size = 0;
    std::vector<uint32_t> cohorts;  // that have a remark
    RepeatLimit lines;              // kAgreed remarks
    std::vector<Peer*> peers;
    BallotBox ballots;
    // The size and the doubted reports by which all peers were judged last.
    std::pair<uint32_t, BallotBox::Doubts> judged_by;
  };

  bool fixed() const { return rules_.configured != 0; }
  bool agrees() const { return !fixed() && !rules_.mixed; }
  Peer* Find(WorkerId id);
  const Peer* Find(WorkerId id) const;
  static uint32_t ProvenBy(const Peer& peer);
  static uint32_t ClaimOf(const Model& model, const Peer& peer);
  static Ballot BallotOf(const Peer& peer);
  // The peer has changed: so has its ballot.
  void Vote(Peer& peer);

  void Touch(Peer& peer, TimePoint now);
  // A worker of these models has changed or left; `touched`, which may be null, is judged anyway.
  void TouchModels(const std::vector<std::string>& names, Peer* touched, TimePoint now);
  void SetPresence(Peer& peer, Presence presence);
  // A worker's size is known: requests need not wait for the other workers.
  void ShortenStart(TimePoint now) { start_ends_ = std::min(start_ends_, now + kGrace); }
  void EndStart(TimePoint now);
  bool FindConflicts();
  void Agree(const std::string& name, Model& model, TimePoint now);
  void NameCohorts(const std::string& name, Model& model);
  void Judge(Peer& peer, TimePoint now);
  // The size of a model that the worker conflicts with; 0: no conflict.
  uint32_t ConflictOf(const Peer& peer) const;
  void Admit(Peer& peer, Membership admission);
  void Expect(Peer& peer, TimePoint now);
  void RepeatDoubts(TimePoint now);
  static void Forget(Peer& peer, RankState& rank);
  void SayDoubted(Peer& peer, uint32_t number, RankState& rank, TimePoint now);
  void Announce(SizeRemark remark, const Model& model);
  void SayDiffering(TimePoint now);
  void NoticeSilence(Peer& peer);
  void NoticeRefusal(Peer& peer, uint32_t agreed);
  void NoticeStaleReport(Peer& peer, uint32_t rank, uint32_t size);
  void SetTrust(Peer& peer, TimePoint now);
  Trust TrustNow(const Peer& peer, const RankState& rank) const;
  void Detach(Peer& peer);
  SizeRemark About(SizeRemark::Kind kind, const Peer& peer) const;

  const BlockSizeRules rules_;
  TimePoint start_ends_;  // at the latest
  bool starting_ = true;
  bool refused_to_start_ = false;
  std::map<WorkerId, Peer> peers_;  // addresses are stable
  size_t absent_ = 0;               // peers that are not kHere
  std::map<std::string, Model> models_;
  Outcome outcome_;
  std::vector<WorkerId> waiting_doubts_;  // each at most once
  // Reports that differ from the setting. What to advise depends on the other workers' reports, so
  // the remark waits for those, at most kCalm. One per worker and size.
  struct Differing {
    WorkerId id;
    uint32_t size = 0;
    TimePoint since{};
  };
  std::vector<Differing> differing_;
};

}  // namespace fathom
