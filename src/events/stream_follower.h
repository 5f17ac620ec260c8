// What to do with the next numbered batch of an engine's stream: apply it, repair a gap first, or
// begin again?
//
// The engine numbers its batches from 0 and keeps the last few thousand for replay. The stream
// itself has no snapshot, no heartbeat and no name for the process behind it. This class holds the
// rules and does no I/O: the same code follows a socket and a simulation.
//
//   joining     ask for everything that the engine still has, so that what it holds is known
//   following   next number: apply. Larger: a gap, ask for what is missing. Smaller: a batch that
//   was
//               replayed already, known by its fingerprint, or else a new process: begin again
//   reconnect   ask for the last batch once more: the same fingerprint is the same process. Without
//               replay nobody can tell, and what may be false is not kept
//   lost        what cannot be replayed empties the rank: it is refilled by what follows. It then
//               claims less than the engine holds, never more
//
// While repairing() no live batch may be fed: they wait where they are.
//
// Threads  One.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

// Why everything known of a rank was given up.
enum class ResetCause : uint8_t {
  kRestart,      // the engine is a new process
  kLostBatches,  // a gap could not be repaired
  kReconnect,    // the connection broke, and nobody can tell whether it is the same process
  kMalformed,    // a batch could not be read
};
std::string_view Name(ResetCause cause);

// What a follower decides.
class FollowerActions {
 public:
  // False if the batch makes no sense.
  virtual bool Apply(uint64_t sequence, std::string_view payload) = 0;
  // Forget everything the rank holds. `lost` batches, if that is the cause and known.
  virtual void Reset(ResetCause cause, uint64_t lost) = 0;
  // Answered by Replayed()... and ReplayEnded(), or by ReplayFailed(), later.
  virtual void AskReplay(uint64_t from) = 0;

 protected:
  ~FollowerActions() = default;
};

class StreamFollower {
 public:
  struct Counts {
    uint64_t batches = 0;     // applied
    uint64_t gaps = 0;        // times that batches were missing
    uint64_t repaired = 0;    // batches that a replay after a gap brought
    uint64_t lost = 0;        // batches that nothing brought
    uint64_t duplicates = 0;  // batches that came twice
    uint64_t restarts = 0;
    uint64_t reconnects = 0;
    uint64_t malformed = 0;
    uint64_t replays = 0;
    uint64_t replay_failures = 0;
  };

  StreamFollower(FollowerActions& actions, bool has_replay)
      : actions_(actions), has_replay_(has_replay) {}

  // The peer has come, for the first time or again.
  void Connected();
  void Live(uint64_t sequence, std::string_view payload);
  void Replayed(uint64_t sequence, std::string_view payload);
  void ReplayEnded();
  // No answer in time.
  void ReplayFailed();

  bool repairing() const { return replay_ != Replay::kNone; }
  // The number that the next batch should have.
  std::optional<uint64_t> next() const { return next_; }
  const Counts& counts() const { return counts_; }

 private:
  enum class Replay : uint8_t { kNone, kJoin, kGap, kVerify };
  struct Batch {
    uint64_t sequence;
    std::string payload;
  };

  void LookAgain();
  void Begin(Replay replay, uint64_t from);
  void BeginAgain(ResetCause cause);
  void Take(uint64_t sequence, std::string_view payload);
  void StartAt(uint64_t sequence, std::string_view payload);
  void Lose(uint64_t sequence, std::string_view payload);
  void Repair(uint64_t sequence, std::string_view payload);
  void Finish();
  bool Seen(uint64_t sequence, uint64_t fingerprint) const;
  void Remember(uint64_t sequence, uint64_t fingerprint);

  FollowerActions& actions_;
  const bool has_replay_;
  std::optional<uint64_t> next_;
  bool connected_ = false;  // ever
  Replay replay_ = Replay::kNone;
  bool first_reply_ = false;   // none has come yet
  bool ignore_rest_ = false;   // of this replay: it is another process's, or there is a newer one
  bool verify_again_ = false;  // the peer came again during a replay
  bool join_next_ = false;     // once this replay is over
  uint32_t attempts_ = 0;      // replays for the batch that waits
  std::optional<Batch> waiting_;  // the live batch that showed the gap

  static constexpr size_t kRecent = 256;
  struct Mark {
    uint64_t sequence = ~uint64_t{0};
    uint64_t fingerprint = 0;
  };
  std::array<Mark, kRecent> recent_;
  // Fingerprints of what a replay brought, until the live stream has caught up with it.
  static constexpr size_t kMostReplayed = size_t{1} << 20;
  uint64_t replayed_from_ = 0;
  std::vector<uint64_t> replayed_;
  Counts counts_;
};

}  // namespace fathom
