// What to do with the next numbered batch of an engine's stream: apply it, repair a gap first, or
// start over?
//
// The engine numbers its batches from 0 and keeps the last few thousand for replay. The stream
// itself has no snapshot, no heartbeat and no identifier of the process behind it. This class holds
// the rules and does no I/O: the same code follows a socket and a simulation.
//
//   joining     request every batch that the engine still has, to learn what its cache holds
//   following   next number: apply. Larger: a gap, request the missing batches. Smaller: a batch
//               that a replay already brought (same fingerprint), or else a new process: start over
//   reconnect   request the last batch again: the same fingerprint means the same process. Without
//               replay the process cannot be identified, so the rank is cleared
//   snapshot    (StartFrom) what another follower of the same stream knew after one of its batches.
//               Request that batch: the same fingerprint means the same process, and the stream
//               goes on from there. Without an answer, or if the engine no longer has it, a live
//               batch decides that the snapshot knows. Anything else drops the snapshot and joins
//   lost        if batches cannot be replayed, the rank is cleared and refilled by later batches.
//               The index then has fewer blocks than the engine, never more
//
// While repairing(), no live batch may be fed: the caller leaves them in the socket's queue.
//
// Threads  One.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/index/holding_snapshot.h"

namespace fathom {

// Why a rank was cleared.
enum class ResetCause : uint8_t {
  kRestart,      // the engine is a new process
  kLostBatches,  // a gap could not be repaired
  kReconnect,    // the connection broke, and the process may be another one
  kMalformed,    // a batch could not be read
};
std::string_view Name(ResetCause cause);

// Carries out a follower's decisions.
class FollowerActions {
 public:
  // False if the batch is invalid. If that is found out later, StreamFollower::Spoiled() follows;
  // the payload stays where it is until StreamFollower::Applied().
  virtual bool Apply(uint64_t sequence, std::string_view payload) = 0;
  // Clears the rank. `lost`: the number of lost batches, if that is the cause and the number is
  // known.
  virtual void Reset(ResetCause cause, uint64_t lost) = 0;
  // Answered later by Replayed()... and ReplayEnded(), or by ReplayFailed().
  virtual void AskReplay(uint64_t from) = 0;
  // The snapshot of StartFrom() belongs to this stream: the rank, which is empty, holds what is in
  // it. False if it cannot be used. If that is found out later, StreamFollower::SnapshotSpoiled()
  // follows.
  virtual bool Adopt() { return false; }
  // That snapshot is not needed any more.
  virtual void DropSnapshot() {}

 protected:
  ~FollowerActions() = default;
};

class StreamFollower {
 public:
  struct Counts {
    uint64_t batches = 0;     // applied
    uint64_t gaps = 0;        // times that batches were missing
    uint64_t repaired = 0;    // batches from a replay after a gap
    uint64_t lost = 0;        // batches that no replay returned
    uint64_t duplicates = 0;  // batches that arrived twice
    uint64_t restarts = 0;
    uint64_t reconnects = 0;
    uint64_t malformed = 0;
    uint64_t replays = 0;
    uint64_t replay_failures = 0;
  };

  StreamFollower(FollowerActions& actions, bool has_replay)
      : actions_(actions), has_replay_(has_replay) {}

  // Before the first Connected(). Without replay, the snapshot must have been taken after the
  // connection was made, so that the batch after it can only be of the same process.
  void StartFrom(StreamMark mark) { offered_ = std::move(mark); }
  // The snapshot that was adopted is invalid after all. Before any other call.
  void SnapshotSpoiled();
  // No live batch has decided on the snapshot for too long.
  void GiveUpSnapshot();
  // Which batch a snapshot of the rank reflects if it is taken now. nullopt: the rank is being
  // repaired, or a replay may bring more than the rank has.
  std::optional<StreamMark> Reflected() const;

  // The peer has connected, for the first time or again.
  void Connected();
  void Live(uint64_t sequence, std::string_view payload);
  void Replayed(uint64_t sequence, std::string_view payload);
  void ReplayEnded();
  // The replay did not answer in time.
  void ReplayFailed();
  // The batch that was applied last is invalid after all. Before any other call.
  void Spoiled();
  // Frees the batch that was applied last.
  void Applied() { taken_.reset(); }

  bool repairing() const { return replay_ != Replay::kNone; }
  // A snapshot waits for the batch that decides on it.
  bool deciding() const { return offered_.has_value(); }
  // The sequence number that the next batch should have.
  std::optional<uint64_t> next() const { return next_; }
  const Counts& counts() const { return counts_; }
  // Memory of the batches that it keeps.
  size_t kept_bytes() const {
    return (waiting_ ? waiting_->payload.size() : 0) + (taken_ ? taken_->payload.size() : 0);
  }

 private:
  enum class Replay : uint8_t { kNone, kJoin, kGap, kVerify, kSnapshot };
  struct Batch {
    uint64_t sequence;
    std::string payload;
  };

  void Refuse();
  void LookAgain();
  void Begin(Replay replay, uint64_t from);
  void BeginAgain(ResetCause cause);
  void Take(uint64_t sequence, std::string_view payload);
  void StartAt(uint64_t sequence, std::string_view payload);
  void Lose(uint64_t sequence, std::string_view payload);
  void Repair(uint64_t sequence, std::string_view payload);
  void Finish();
  bool AdoptSnapshot();
  void DropSnapshot();
  void JoinInstead();
  void AwaitLive();
  void Decide(uint64_t sequence, std::string_view payload);
  bool Seen(uint64_t sequence, uint64_t fingerprint) const;
  void Remember(uint64_t sequence, uint64_t fingerprint);

  FollowerActions& actions_;
  const bool has_replay_;
  std::optional<uint64_t> next_;
  bool connected_ = false;  // at least once
  Replay replay_ = Replay::kNone;
  bool first_reply_ = false;      // no batch of this replay has arrived yet
  bool ignore_rest_ = false;      // of this replay: it belongs to another process
  bool verify_again_ = false;     // the peer reconnected during a replay
  bool join_next_ = false;        // start a join when this replay ends
  uint32_t attempts_ = 0;         // replays for the waiting batch
  std::optional<Batch> waiting_;  // the live batch that showed the gap
  std::optional<Batch> taken_;    // it, after the replay, until it was applied
  std::optional<StreamMark> offered_;
  bool too_old_ = false;  // the engine no longer has its batch; live ones may have waited for it
  bool whole_ = true;     // nothing was lost since the first batch that the engine could replay
  // Live batches below this are older than those that the adopted snapshot knows: they waited in
  // the connection while it was fetched. 0 after the first other one.
  uint64_t older_than_ = 0;

  static constexpr size_t kRecent = StreamMark::kMostFingerprints;
  struct Mark {
    uint64_t sequence = ~uint64_t{0};
    uint64_t fingerprint = 0;
  };
  std::array<Mark, kRecent> recent_;
  // Fingerprints of replayed batches, until the live stream has caught up with them.
  static constexpr size_t kMostReplayed = size_t{1} << 20;
  uint64_t replayed_from_ = 0;
  std::vector<uint64_t> replayed_;
  Counts counts_;
};

}  // namespace fathom
