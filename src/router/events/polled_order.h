// In which order are the events of a polled engine applied, if several routers poll it?
//
// The engine hands out each event once, in order, to the router that asks. Each router passes on
// what it was given, so that events come early, late, or not at all.
//
//   in order   Ids are consecutive per rank. An event that comes early is held back, until those
//              before it have come, or until kPatience is over: then they are lost, which is a gap.
//              An event that comes after that is left out. A view of others that is ahead of the
//              events counts like an early event, so that a lost answer is noticed also if no event
//              follows it.
//   process    Ids start again when the engine restarts, and no event names its process. Processes
//              are counted: a higher count of another router is adopted, a lower one is too late. A
//              new one is counted if an answer to our own poll has ids below those that were known
//              when the poll was sent, or if an id comes twice, because one process hands out each
//              id once.
//   beginning  The first event that a rank is seen with is applied at once only if its id is 0.
//
// Two routers that notice the same restart count the same. A restart is not noticed if all events
// of the new process were lost up to the id at which the old one had arrived.
//
// Memory   kMostHeldBytes of events held back, by estimate; beyond that they are not waited for.
//          Answers of others are left out while kMostReadyBytes wait to be applied.
// Threads  One.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "router/events/poll_turn.h"
#include "router/events/trtllm_event.h"

namespace fathom {

class PolledOrder {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(2);
  static constexpr size_t kMostRanks = 1024;
  static constexpr size_t kMostHeldBytes = 32 << 20;
  static constexpr size_t kMostReadyBytes = 64 << 20;
  static constexpr size_t kMostSkipped = 16;

  // What others know already, if they follow the engine.
  explicit PolledOrder(PolledView known = {}, TimePoint now = {});

  const PolledView& view() const { return view_; }
  // Whether another router's view lacks a process or ids that are known here. If that one polls, it
  // must hear of them: a router that began while no other one polled counts processes from 1 again.
  bool KnowsMoreThan(const PolledView& told) const;
  // The id that is applied next; nullopt: the rank has not begun.
  std::optional<uint64_t> next(uint32_t rank) const;

  // The answer to our own poll, which was sent when view() was `sent`. False: which process it came
  // from is uncertain, its events are left out and must not be passed on.
  bool TakeOwn(const PolledView& sent, std::vector<TrtllmEvent> events, TimePoint now);
  // What another router passes on.
  void TakeHeard(const PolledView& told, std::vector<TrtllmEvent> events, TimePoint now);
  // The rank's events before `next` are known from elsewhere. False: some of it are in order
  // already.
  bool BeginAt(uint32_t number, uint64_t next, TimePoint now);
  // Gives up what was waited for that long.
  void Expire(TimePoint now, Duration patience);

  // What is to be done next, in order.
  struct Step {
    enum class What : uint8_t {
      kEvent,
      kGap,      // `lost` events of the rank
      kRestart,  // of the engine: all ranks start again
    };
    What what = What::kEvent;
    uint32_t rank = 0;
    uint64_t lost = 0;
    TrtllmEvent event;
  };
  std::optional<Step> Next();
  bool ready() const { return !ready_.empty(); }
  // Whether Expire() has something to wait for.
  bool waiting() const;
  // Whether an id came twice since the last call: the others must hear of the new process.
  bool TakeContradiction() { return std::exchange(contradiction_, false); }

 private:
  struct Held {
    TrtllmEvent event;
    TimePoint since;
  };
  struct Rank {
    std::optional<uint64_t> next;                       // to be applied
    uint64_t first = 0;                                 // known are the fates of ids from here on
    std::deque<std::pair<uint64_t, uint64_t>> skipped;  // ids from, to: lost
    std::map<uint64_t, Held> held;
    TimePoint behind_since{};  // of the view, while nothing is held
  };

  void BeginProcess(uint64_t process);
  void TakeView(const PolledView& told, TimePoint now);
  void InsertAll(std::vector<TrtllmEvent> events, TimePoint now);
  // False: the id came before.
  bool Insert(TrtllmEvent event, TimePoint now);
  bool Hold(Rank& rank, TrtllmEvent event, TimePoint now);
  void Pass(Rank& rank, TrtllmEvent event);
  void PassHeld(Rank& rank);
  void Jump(uint32_t number, Rank& rank, TimePoint now);
  bool IsBehind(uint32_t number, const Rank& rank) const;
  TimePoint BehindSince(const Rank& rank) const;
  static bool WasApplied(const Rank& rank, uint64_t id);

  PolledView view_;
  std::map<uint32_t, Rank> ranks_;
  size_t held_bytes_ = 0;
  size_t ready_bytes_ = 0;
  std::deque<Step> ready_;
  bool contradiction_ = false;
};

}  // namespace fathom
