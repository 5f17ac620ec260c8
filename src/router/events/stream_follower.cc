#include "router/events/stream_follower.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

// Limit of replay requests for the batch that revealed a gap.
constexpr uint32_t kMostAttempts = 3;

// Batches contain the engine's clock, so two different batches never have equal bytes by chance.
uint64_t FingerprintOf(std::string_view payload) {
  return XXH3_64bits(payload.data(), payload.size());
}

}  // namespace

std::string_view Name(ResetCause cause) {
  switch (cause) {
    case ResetCause::kRestart:
      return "restart";
    case ResetCause::kLostBatches:
      return "lost_batches";
    case ResetCause::kReconnect:
      return "reconnect";
    case ResetCause::kMalformed:
      return "malformed";
  }
  return "unknown";
}

// --- seen batches -------------------------------------------------------------------------------

bool StreamFollower::Seen(uint64_t sequence, uint64_t fingerprint) const {
  if (sequence >= replayed_from_ && sequence - replayed_from_ < replayed_.size()) {
    return replayed_[sequence - replayed_from_] == fingerprint;
  }
  const Mark& mark = recent_[sequence % kRecent];
  return mark.sequence == sequence && mark.fingerprint == fingerprint;
}

void StreamFollower::Remember(uint64_t sequence, uint64_t fingerprint) {
  recent_[sequence % kRecent] = {sequence, fingerprint};
  if (!repairing() || replayed_.size() == kMostReplayed) return;
  if (replayed_.empty() || sequence != replayed_from_ + replayed_.size()) {
    replayed_.clear();
    replayed_from_ = sequence;
  }
  replayed_.push_back(fingerprint);
}

// --- snapshots ----------------------------------------------------------------------------------

std::optional<StreamMark> StreamFollower::Reflected() const {
  if (repairing() || !next_ || *next_ == 0 || (has_replay_ && !whole_)) return std::nullopt;
  StreamMark mark{.sequence = *next_ - 1, .fingerprints = {}};
  for (uint64_t sequence = *next_; sequence > 0; --sequence) {
    const Mark& known = recent_[(sequence - 1) % kRecent];
    if (known.sequence != sequence - 1 || mark.fingerprints.size() == kRecent) break;
    mark.fingerprints.push_back(known.fingerprint);
  }
  if (mark.fingerprints.empty()) return std::nullopt;
  std::ranges::reverse(mark.fingerprints);
  return mark;
}

void StreamFollower::DropSnapshot() {
  if (!offered_) return;
  offered_.reset();
  actions_.DropSnapshot();
}

bool StreamFollower::AdoptSnapshot() {
  if (!actions_.Adopt()) {
    DropSnapshot();
    return false;
  }
  const StreamMark mark = *std::exchange(offered_, std::nullopt);
  whole_ = true;  // otherwise it would not have been told
  next_ = mark.sequence + 1;
  uint64_t sequence = *next_ - mark.fingerprints.size();
  older_than_ = sequence;
  for (const uint64_t fingerprint : mark.fingerprints) {
    recent_[sequence % kRecent] = {sequence, fingerprint};
    ++sequence;
  }
  // The replay goes on and overwrites recent_, while live batches may still wait in the connection
  // that the snapshot knows.
  if (repairing()) {
    replayed_from_ = older_than_;
    replayed_ = mark.fingerprints;
  }
  return true;
}

// The snapshot is not of this process, or it can no longer be told.
void StreamFollower::JoinInstead() {
  DropSnapshot();
  ignore_rest_ = true;
  join_next_ = true;
}

// The snapshot's batch has left the engine's buffer while it was fetched. Live batches have waited
// in the connection since before it was made.
void StreamFollower::AwaitLive() {
  ignore_rest_ = true;
  too_old_ = true;
}

void StreamFollower::SnapshotSpoiled() {
  next_.reset();
  older_than_ = 0;
  replayed_.clear();
  recent_.fill({});
  actions_.Reset(ResetCause::kMalformed, 0);
  if (repairing()) {
    ignore_rest_ = true;
    join_next_ = true;
  } else if (has_replay_) {
    Begin(Replay::kJoin, 0);
  }
}

void StreamFollower::GiveUpSnapshot() {
  if (repairing()) return;
  DropSnapshot();
  if (too_old_) Begin(Replay::kJoin, 0);
}

// A live batch shows whether the snapshot is of this process. Batches that are older than those
// that it knows waited in the connection, and are in it.
void StreamFollower::Decide(uint64_t sequence, std::string_view payload) {
  const StreamMark& mark = *offered_;
  const uint64_t oldest = mark.sequence + 1 - mark.fingerprints.size();
  if (sequence < oldest) {
    ++counts_.duplicates;
    return;
  }
  const bool known =
      sequence <= mark.sequence && mark.fingerprints[sequence - oldest] == FingerprintOf(payload);
  if (known && AdoptSnapshot()) {
    ++counts_.duplicates;
    older_than_ = 0;
    return;
  }
  if (offered_ && !has_replay_ && sequence == mark.sequence + 1 && AdoptSnapshot()) {
    older_than_ = 0;
    Take(sequence, payload);
    return;
  }
  DropSnapshot();
  if (too_old_) {
    waiting_ = {sequence, std::string(payload)};
    Begin(Replay::kJoin, 0);
    return;
  }
  StartAt(sequence, payload);
}

// --- live ---------------------------------------------------------------------------------------

void StreamFollower::Connected() {
  const bool again = std::exchange(connected_, true);
  if (again) ++counts_.reconnects;
  older_than_ = 0;
  if (repairing()) {
    verify_again_ = true;
  } else if (!next_) {
    if (again) DropSnapshot();  // perhaps another process
    if (!has_replay_) return;
    offered_ ? Begin(Replay::kSnapshot, offered_->sequence) : Begin(Replay::kJoin, 0);
  } else if (again && has_replay_) {
    LookAgain();
  } else if (again) {
    next_.reset();
    actions_.Reset(ResetCause::kReconnect, 0);
  }
}

void StreamFollower::Live(uint64_t sequence, std::string_view payload) {
  if (sequence >= older_than_) older_than_ = 0;
  if (!next_) {
    offered_ ? Decide(sequence, payload) : StartAt(sequence, payload);
  } else if (sequence < older_than_) {
    ++counts_.duplicates;
    return;
  } else if (sequence == *next_) {
    replayed_.clear();  // caught up
    Take(sequence, payload);
  } else if (sequence > *next_) {
    Repair(sequence, payload);
  } else if (Seen(sequence, FingerprintOf(payload))) {
    ++counts_.duplicates;
  } else if (has_replay_) {
    waiting_ = {sequence, std::string(payload)};
    BeginAgain(ResetCause::kRestart);
    Begin(Replay::kJoin, 0);
  } else {
    BeginAgain(ResetCause::kRestart);
    StartAt(sequence, payload);
  }
}

void StreamFollower::Take(uint64_t sequence, std::string_view payload) {
  next_ = sequence + 1;
  Remember(sequence, FingerprintOf(payload));
  if (actions_.Apply(sequence, payload)) {
    ++counts_.batches;
    return;
  }
  Refuse();
}

void StreamFollower::Refuse() {
  // The batch's changes are unknown, so the known blocks may be stale.
  ++counts_.malformed;
  whole_ = false;
  actions_.Reset(ResetCause::kMalformed, 1);
}

void StreamFollower::Spoiled() {
  --counts_.batches;
  Refuse();
}

void StreamFollower::StartAt(uint64_t sequence, std::string_view payload) {
  next_ = sequence;
  Take(sequence, payload);
}

// No replay has the batches before this one.
void StreamFollower::Lose(uint64_t sequence, std::string_view payload) {
  counts_.lost += sequence - *next_;
  whole_ = false;
  actions_.Reset(ResetCause::kLostBatches, sequence - *next_);
  // The fingerprints go with the blocks: a batch replayed again must be applied again.
  replayed_.clear();
  recent_.fill({});
  StartAt(sequence, payload);
}

void StreamFollower::Repair(uint64_t sequence, std::string_view payload) {
  if (attempts_ == 0) ++counts_.gaps;
  if (!has_replay_ || attempts_ == kMostAttempts) {
    attempts_ = 0;
    Lose(sequence, payload);
    return;
  }
  ++attempts_;
  waiting_ = {sequence, std::string(payload)};
  Begin(Replay::kGap, *next_);
}

void StreamFollower::BeginAgain(ResetCause cause) {
  if (cause == ResetCause::kRestart) ++counts_.restarts;
  whole_ = cause == ResetCause::kRestart;
  older_than_ = 0;
  next_.reset();
  replayed_.clear();
  recent_.fill({});
  actions_.Reset(cause, 0);
}

// --- replay -------------------------------------------------------------------------------------

// Checks whether the process is still the same.
void StreamFollower::LookAgain() {
  if (next_.value_or(0) > 0) return Begin(Replay::kVerify, *next_ - 1);
  next_.reset();
  Begin(Replay::kJoin, 0);
}

void StreamFollower::Begin(Replay replay, uint64_t from) {
  replay_ = replay;
  too_old_ = false;
  if (replay == Replay::kJoin) whole_ = true;
  first_reply_ = true;
  ignore_rest_ = false;
  ++counts_.replays;
  actions_.AskReplay(from);
}

void StreamFollower::Replayed(uint64_t sequence, std::string_view payload) {
  if (!repairing() || ignore_rest_) return;
  const bool first = std::exchange(first_reply_, false);
  if (first && replay_ == Replay::kVerify) {
    if (Seen(sequence, FingerprintOf(payload))) return;
    BeginAgain(ResetCause::kRestart);
    ignore_rest_ = true;
    join_next_ = true;
    return;
  }
  if (replay_ == Replay::kSnapshot && offered_) {
    // The batches after it are a join.
    if (sequence > offered_->sequence) return AwaitLive();
    const bool same =
        sequence == offered_->sequence && offered_->fingerprints.back() == FingerprintOf(payload);
    if (!same || !AdoptSnapshot()) return JoinInstead();
    replay_ = Replay::kJoin;
    return;
  }
  if (!next_) {
    StartAt(sequence, payload);
  } else if (sequence == *next_) {
    if (replay_ != Replay::kJoin) ++counts_.repaired;
    Take(sequence, payload);
  } else if (sequence > *next_) {
    Lose(sequence, payload);
  }
}

void StreamFollower::ReplayEnded() {
  if (!repairing()) return;
  // No batch was replayed, although the known process would still have its last one.
  if (replay_ == Replay::kVerify && first_reply_) {
    BeginAgain(ResetCause::kRestart);
    join_next_ = true;
  }
  // The engine does not have the batch of the snapshot.
  if (replay_ == Replay::kSnapshot && first_reply_) JoinInstead();
  // The engine has published nothing yet, so batch 0 is next, and its loss can be detected too.
  if (replay_ == Replay::kJoin && first_reply_ && !next_) next_ = 0;
  Finish();
}

void StreamFollower::ReplayFailed() {
  if (!repairing()) return;
  ++counts_.replay_failures;
  if (replay_ == Replay::kVerify) BeginAgain(ResetCause::kReconnect);
  if (!next_) whole_ = false;
  join_next_ = false;
  verify_again_ = false;
  attempts_ = kMostAttempts;  // the waiting batch is taken without another replay
  Finish();
  attempts_ = 0;
}

void StreamFollower::Finish() {
  const Replay finished = std::exchange(replay_, Replay::kNone);
  if (std::exchange(join_next_, false)) {
    Begin(Replay::kJoin, 0);
    return;
  }
  if (std::exchange(verify_again_, false)) {
    LookAgain();
    return;
  }
  if (!waiting_) return;
  taken_ = std::exchange(waiting_, std::nullopt);
  const Batch& batch = *taken_;
  if (next_ && batch.sequence < *next_ && !Seen(batch.sequence, FingerprintOf(batch.payload))) {
    // The replay came from another process than the batch that caused it. After a join, the batch
    // is from the old process; after a gap, batches of both processes are mixed.
    ++counts_.duplicates;
    if (finished == Replay::kJoin) return;
    BeginAgain(ResetCause::kRestart);
    Begin(Replay::kJoin, 0);
    return;
  }
  Live(batch.sequence, batch.payload);
  if (!repairing()) attempts_ = 0;
}

}  // namespace fathom
