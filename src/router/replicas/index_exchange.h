// How does a router that starts get the index of one that has followed the engines for longer?
//
// Rank by rank. The intake asks for a rank when it joins the rank's stream; a peer that says it is
// informed is asked for a snapshot, which comes in pieces. Each piece is asked for, a few at a
// time, and again if it does not come. Pieces are put together, checked by the snapshot's digest,
// and the intake decides by the engine's own batches whether the snapshot fits (StreamFollower).
//
//   newcomer                                peer
//   Ask rank, piece 0          ------->     exports the rank, cuts it
//   Ask piece 1, 2, 3          <------->    Piece 0 of n; a piece for each question
//   Ask piece n                ------->     forgets the export
//
// Whom      A peer that serves the same models, if there is one: it follows the same ranks.
// Failure   A peer that has nothing, falls silent or sends damaged pieces is replaced by the next
//           one. After kMostFailures of the latter the rank is joined without a snapshot, as when
//           the one who asked has given up.
// Settling  In the beginning it is not known who is there. A replica that is reached is waited for
//           until it has found us in turn, for which it may have to look up a name.
// Informed  A router is informed when every rank that a peer could tell of has been answered and
//           taken up or dropped, or when there is no peer, or when nothing has happened for
//           kQuiet: ranks of workers that this router does not have are never asked for. While
//           snapshots are undecided, for kUndecided.
// Pace      A peer sends at most kPiecesPerTick per tick, and exports one rank at a time.
// Threads   The replicas' loop. Ask(), informed() and counts() from any thread. Both loops, the
//           replicas' and the intake's, must have stopped before either object is destroyed.
// Memory    At most Options::most_bytes for snapshots that come, and as much for those that go.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "router/events/snapshot_source.h"
#include "router/replicas/replica_guest.h"

namespace fathom {

struct IndexExchangeOptions {
  size_t most_bytes = size_t{512} << 20;
  uint64_t seed = 0;                // of the numbers of questions; differs from process to process
  std::vector<std::string> models;  // that this replica serves: who has the same knows its ranks
  // Whether there may be others that were not heard yet. On the replicas' loop. Null: no.
  std::function<bool()> awaits_others;
};

// Since the start. Plain counts that order nothing else.
struct IndexExchangeCounts {
  std::atomic<uint64_t> asked{0};     // ranks
  std::atomic<uint64_t> received{0};  // complete snapshots
  std::atomic<uint64_t> refused{0};   // times that a peer had none
  std::atomic<uint64_t> failed{0};    // times that a peer fell silent or sent a damaged one
  std::atomic<uint64_t> without{0};   // ranks that were joined without a snapshot
  std::atomic<uint64_t> by_time{0};   // 1: informed though snapshots were not decided
  std::atomic<uint64_t> served{0};    // snapshots that were made for others
  std::atomic<uint64_t> received_bytes{0};
  std::atomic<uint64_t> sent_bytes{0};
};

class IndexExchange final : public ReplicaGuest, public SnapshotSource {
 public:
  static constexpr size_t kPiece = 192 << 10;
  static constexpr size_t kAtOnce = 3;  // ranks
  static constexpr size_t kWindow = 4;  // pieces of a rank
  static constexpr size_t kPiecesPerTick = 8;
  static constexpr size_t kMostFailures = 2;  // of peers, for one rank
  static constexpr size_t kMostRanks = 16384;
  static constexpr Duration kAskAgain = std::chrono::milliseconds(250);
  static constexpr Duration kPatience = std::chrono::seconds(3);  // without progress
  // Until peers have been heard after the start, or after they could first be.
  static constexpr Duration kSettle = std::chrono::seconds(2);
  static constexpr Duration kMostSettle = std::chrono::seconds(15);
  // How long an export is tried again while there is no memory for it. The one who asks waits
  // kPatience.
  static constexpr Duration kPostpone = std::chrono::seconds(2);
  static constexpr Duration kQuiet = std::chrono::seconds(5);
  // The same while snapshots are undecided: an idle engine decides by its next event. As
  // IntakeOptions::snapshot_wait, after which the intake drops them.
  static constexpr Duration kUndecided = std::chrono::seconds(30);
  static constexpr Duration kKeep = std::chrono::seconds(5);  // an export, after the last question

  // Runs work on the replicas' loop; from any thread.
  using Post = std::function<void(std::move_only_function<void()> work)>;
  // `taken` are the counts of the intake that asks (Intake::snapshot_counts).
  IndexExchange(ReplicaVoice& voice, SnapshotTeller& teller, const SnapshotCounts& taken, Post post,
                IndexExchangeOptions options);

  void Ask(const RankLabel& rank, std::weak_ptr<const void> asker, Answer answer) override;

  void Heard(const ReplicaMessage& message, TimePoint now) override;
  void Tick(TimePoint now) override;
  void Joined(const std::string& /*origin*/, TimePoint /*now*/) override {}
  void Left(const std::string& origin, TimePoint now) override;

  bool informed() const { return informed_.load(std::memory_order_relaxed); }
  const IndexExchangeCounts& counts() const { return counts_; }

 private:
  using RankKey = std::pair<uint64_t, uint32_t>;

  // A snapshot on its way to us.
  struct Fetch {
    RankLabel rank;
    std::weak_ptr<const void> asker;
    Answer answer;
    std::vector<std::string> tried;  // peers; the last one is being asked
    size_t failures = 0;             // of these
    uint64_t question = 0;
    size_t pieces = 0;  // 0: not known yet
    std::string bytes;
    std::vector<bool> here;  // by piece
    size_t missing = 0;
    size_t last_bytes = 0;
    size_t next = 0;                    // the first that was not asked for
    std::map<size_t, TimePoint> asked;  // pieces that are awaited
    TimePoint progress{};
  };
  // A snapshot on its way to another.
  struct Service {
    RankLabel rank;
    TimePoint since{};  // the first question
    bool begun = false;
    bool postponed = false;  // there was no memory; until it is asked for again
    bool ready = false;
    std::string bytes;
    TimePoint asked{};
  };
  using ServiceKey = std::pair<std::string, uint64_t>;  // who asks, the number of the question
  struct Sending {
    ServiceKey service;
    size_t piece = 0;
  };

  // --- asking ---
  void Settle(TimePoint now);
  void DropUnwanted(TimePoint now);
  void StartWaiting(TimePoint now);
  // Those that are best to ask.
  std::vector<std::string> PeersBut(const std::vector<std::string>& tried) const;
  std::vector<std::string> PeersOfTheSameModels() const;
  bool AskPeer(Fetch& fetch, TimePoint now);
  void AskPieces(Fetch& fetch, TimePoint now);
  void SendAsk(const Fetch& fetch, size_t piece);
  void Take(const std::string& origin, const Piece& piece, TimePoint now);
  bool TakeHead(Fetch& fetch, const Piece& piece);
  bool TakeBytes(Fetch& fetch, const Piece& piece);
  bool Complete(Fetch& fetch, TimePoint now);
  void Failed(uint64_t question, TimePoint now);
  void TryNext(uint64_t question, TimePoint now);
  void End(Fetch fetch, std::shared_ptr<const HoldingSnapshot> snapshot, TimePoint now);
  size_t most_pieces() const { return options_.most_bytes / kAtOnce / kPiece; }

  // --- being informed ---
  void AskForRanks(TimePoint now);
  void TakeRanks(const Piece& piece, TimePoint now);
  bool KnowsEnough(TimePoint now);

  // --- answering ---
  void Serve(const std::string& origin, const struct Ask& ask, TimePoint now);
  void ServeRanks(const std::string& origin, uint64_t question);
  void ServeRank(const std::string& origin, const struct Ask& ask, TimePoint now);
  void Refuse(std::map<ServiceKey, Service>::iterator service);
  void BeginExport();
  void Exported(const ServiceKey& key, Result<std::string> snapshot);
  void SendPieces();
  size_t served_bytes() const;

  // Runs on the replicas' loop, unless the exchange is gone by then.
  void Later(std::move_only_function<void()> work);

  ReplicaVoice& voice_;
  SnapshotTeller& teller_;
  const SnapshotCounts& taken_;
  const Post post_;
  const IndexExchangeOptions options_;
  Random random_;
  uint64_t last_question_;
  std::optional<TimePoint> began_;
  TimePoint awaited_{};  // when others were last expected that had not been heard
  bool settling_ = true;
  std::deque<Fetch> waiting_;
  std::map<uint64_t, Fetch> active_;  // by question

  std::atomic<bool> informed_{false};
  std::set<RankKey> answered_;
  std::optional<std::set<RankKey>> expected_;  // what a peer could tell
  uint64_t ranks_question_ = 0;
  std::string ranks_peer_;
  TimePoint ranks_asked_{};
  TimePoint happened_{};  // the last question or answer
  uint64_t given_ = 0;    // snapshots, to the intake

  std::map<ServiceKey, Service> services_;
  bool exporting_ = false;
  bool listing_ = false;
  std::deque<Sending> sending_;
  size_t sent_in_tick_ = 0;
  IndexExchangeCounts counts_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace fathom
