// Which replica polls an engine that hands out each event once, and how do the others hear of it?
//
//   turn      Each replica computes for each worker the same order of all replicas (rendezvous
//             hashing). A replica polls unless it hears of one before it that does. If it hears of
//             none at all, it waits kStep for each one before it. In the beginning it listens for
//             kListen. So replicas need not follow the same workers, one that cannot reach the
//             engine is replaced, and for a moment two may poll, which does no harm.
//   answers   are passed on as they were polled, in parts. Others apply them by event id
//             (router/events/polled_order.h). One of several parts is told to each of the others by
//             itself, a part when all have taken the one before, so that it displaces nothing else
//             that they are told. Each is waited for at most kPatience in an answer, and kPartTime
//             for each part of it; then not at all until it has taken a whole one.
//   presence  Who polls says so every kAnnounce, with its view of the ids, as long as its polls are
//             answered, and says when it ends. So a newcomer learns that the worker is polled, and
//             from where on; and a lost answer is noticed also if no event follows it. Its
//             view has nothing of an answer that still waits to be told.
//
// Threads  PollTurn from any thread, ReplicaGuest on the replicas' loop.
// Memory   kMostOutgoing bytes wait to be told; kMostIncoming bytes of answers that are not
//          complete; kMostWorkers workers of others.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "router/events/poll_turn.h"
#include "router/replicas/replica_guest.h"

namespace fathom {

class PollExchange final : public ReplicaGuest, public PollTurn {
 public:
  static constexpr Duration kAnnounce = std::chrono::seconds(1);
  static constexpr Duration kListen = std::chrono::seconds(2);
  static constexpr Duration kSilent = std::chrono::seconds(4);
  static constexpr Duration kStep = std::chrono::seconds(1);
  static constexpr Duration kPartsWithin = std::chrono::seconds(2);
  static constexpr Duration kForgetAfter = std::chrono::seconds(60);
  static constexpr Duration kPatience = std::chrono::seconds(1);
  static constexpr Duration kPartTime = std::chrono::milliseconds(25);  // at 60 Mbit/s
  static constexpr Duration kTellAgain = std::chrono::milliseconds(20);
  static constexpr Duration kDecideEvery = std::chrono::milliseconds(50);

  static constexpr size_t kPart = 192 << 10;
  static constexpr size_t kBytesPerTick = 1 << 20;
  static constexpr size_t kLongestAnswer = 64 << 20;
  static constexpr size_t kMostOutgoing = 96 << 20;
  static constexpr size_t kMostIncoming = 96 << 20;
  static constexpr size_t kMostUnfinished = 256;
  static constexpr size_t kMostWorkers = 16384;

  // `deliver` is called on the replicas' loop with what others pass on. Both must outlive it.
  using Deliver = std::function<void(WorkerId worker, PolledWord word)>;
  PollExchange(ReplicaVoice& voice, Deliver deliver)
      : voice_(voice), deliver_(std::move(deliver)) {}

  bool Mine(WorkerId worker) override;
  std::optional<PolledView> Known(WorkerId worker) const override;
  void Polled(WorkerId worker, PolledWord word) override;
  void Rests(WorkerId worker) override;
  void Ends(WorkerId worker) override;
  bool telling() const override;
  bool alone() const override { return alone_.load(std::memory_order_relaxed); }

  void Heard(const ReplicaMessage& message, TimePoint now) override;
  void Tick(TimePoint now) override;
  void Joined(const std::string& origin, TimePoint now) override;
  void Left(const std::string& origin, TimePoint now) override;

  struct Counts {
    uint64_t told = 0;        // answers with events
    uint64_t told_bytes = 0;  // of these
    uint64_t heard = 0;       // complete answers of others
    uint64_t dropped = 0;     // of ours, because too many waited to be told
    uint64_t incomplete = 0;  // of others, of which parts were lost
    uint64_t polling = 0;     // workers that it is this replica's turn to poll
    uint64_t followed = 0;    // workers that another one polls
  };
  Counts counts() const;  // any thread

 private:
  // A worker that this replica follows.
  struct Turn {
    bool asked = true;  // since the last decision
    bool mine = false;
    bool answered = false;  // our polls are, as far as is known
    bool polls() const { return mine && answered; }
    PolledView view;                  // of our last poll
    std::optional<PolledView> known;  // of others that poll
    TimePoint since{};                // of its first decision
    TimePoint last_asked{};
    TimePoint quiet_since{};  // a replica before us was heard until then
    TimePoint announced{};
  };
  struct Outgoing {
    WorkerId worker;
    PolledWord word;
    uint64_t answer = 0;
    uint32_t part = 0;
    size_t parts() const { return std::max<size_t>(1, (word.body.size() + kPart - 1) / kPart); }
  };
  // Of a worker, in outgoing_.
  struct Waiting {
    size_t words = 0;
    PolledView told;  // the view without them
  };
  // Another replica that does not take parts as fast as they come.
  struct Slow {
    Duration waited{};               // for parts of the answer that is being told
    std::optional<TimePoint> since;  // is being waited for
    bool missed = false;             // a part of that answer
  };
  // Another replica that polls a worker.
  struct Poller {
    TimePoint heard{};
    PolledView view;
  };
  using Pollers = std::map<std::string, Poller, std::less<>>;
  // An answer whose parts come one by one.
  struct Unfinished {
    TimePoint since{};
    size_t bytes = 0;
    uint32_t missing = 0;
    std::vector<std::optional<std::string>> parts;
  };
  struct AnswerName {
    std::string origin;
    uint64_t answer = 0;
    friend auto operator<=>(const AnswerName&, const AnswerName&) = default;
  };

  // `before` is the worker's view without it.
  void Queue(WorkerId worker, PolledWord word, const PolledView& before);
  static uint64_t Score(WorkerId worker, std::string_view replica);
  void TellParts(TimePoint now);
  std::optional<PolledAnswer> FrontPart() const;
  bool TellPart(const PolledAnswer& part, TimePoint now);
  void PartIsTold(TimePoint now);
  void Decide(TimePoint now);
  void Decide(WorkerId worker, Turn& turn, TimePoint now) const;
  void Announce(TimePoint now);
  void Note(const std::string& origin, const PolledAnswer& told, TimePoint now);
  std::optional<std::string> Assemble(const std::string& origin, const PolledAnswer& told,
                                      TimePoint now);
  void DropOldest();
  void Forget(TimePoint now);
  void ForgetPollers(const std::function<bool(const Pollers::value_type&)>& gone);

  ReplicaVoice& voice_;
  const Deliver deliver_;
  std::atomic<bool> alone_ = true;

  mutable std::mutex mutex_;  // of what follows, as far as `counts_`
  std::unordered_map<WorkerId, Turn> turns_;
  std::deque<Outgoing> outgoing_;
  size_t outgoing_bytes_ = 0;
  std::unordered_map<WorkerId, Waiting> waiting_;
  uint64_t answers_ = 0;
  Counts counts_;

  // On the replicas' loop alone.
  std::unordered_map<WorkerId, Pollers> pollers_;
  std::map<AnswerName, Unfinished> unfinished_;
  size_t unfinished_bytes_ = 0;
  std::map<std::string, uint64_t> finished_;  // the last answer of several parts, by origin
  std::set<std::string> have_part_;           // the next part to be told
  std::map<std::string, Slow> slow_;          // those that were waited for
  TimePoint tell_again_{};
  std::optional<TimePoint> began_;
  TimePoint decided_{};
};

}  // namespace fathom
