// An engine core on a real clock: steps it, waits as long as each step lasts, and hands every
// sequence its tokens when the step is over.
//
//   Ticket ticket(driver, watcher);
//   ticket.Submit(request);                          // a sequence; several may share a ticket
//   while (const auto token = ticket.Take()) ...     // what has come; the watcher hears of more
//
// Time     The simulated time of consecutive steps adds up exactly: that a timer fires late does
// not
//          make the engine slower, only the tokens of that step a little late. An engine that lags
//          behind by more than a few steps' time gives up the difference.
// Events   The KV events of a step go to the listener when the step is over.
// Threads  One loop, with all its tickets; statistics() from any thread.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "io/net/loop.h"
#include "lab/mock/engine_core.h"
#include "metrics/histogram.h"

namespace fathom {

class EngineDriver;

// Wants to know that a ticket has something to take. The call may destroy the ticket.
class TicketWatcher {
 public:
  virtual void OnTokens() = 0;

 protected:
  ~TicketWatcher() = default;
};

// One client's share of an engine. What still runs when it is destroyed is cancelled.
class Ticket {
 public:
  struct Token {
    uint32_t choice;  // which of its sequences, in the order of Submit()
    TokenId token;
    bool finished;
    uint32_t cached_tokens;  // of the sequence's prompt
    bool preempted;          // the sequence, at least once
  };

  Ticket(EngineDriver& driver, TicketWatcher& watcher) : driver_(driver), watcher_(watcher) {}
  ~Ticket();
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  Result<void> Submit(EngineRequest request);
  // The choice has said enough.
  void Cancel(uint32_t choice);
  std::optional<Token> Take();

 private:
  friend class EngineDriver;

  EngineDriver& driver_;
  TicketWatcher& watcher_;
  std::vector<SequenceId> sequences_;
  std::deque<Token> tokens_;
  bool due_ = false;  // in the driver's list
};

// One engine now. Counts are since the start.
struct EngineStatistics {
  uint64_t running = 0;
  uint64_t waiting = 0;
  double cache_usage = 0;  // share of the blocks that running sequences hold
  EngineCounters counters;
};

// What one step was like, for engines that tell.
struct Iteration {
  uint64_t number;
  uint64_t running;
  uint64_t waiting;
  uint64_t decoding;
  uint64_t new_tokens;
  uint64_t used_blocks;
  Duration duration;
};

class EngineDriver {
 public:
  using Listener = std::function<void(const std::vector<KvEvent>&)>;
  static constexpr size_t kIterationsKept = 1000;

  // Steps take 1/speedup of their time. `profile` must outlive the driver.
  EngineDriver(Loop& loop, const EngineOptions& options, const TimingProfile& profile,
               double speedup);
  ~EngineDriver();
  EngineDriver(const EngineDriver&) = delete;
  EngineDriver& operator=(const EngineDriver&) = delete;

  void SetListener(Listener listener) { listener_ = std::move(listener); }
  bool ResetPrefixCache() { return core_.ResetPrefixCache(); }
  // As EngineCore's; inside the listener's call, or while nothing runs.
  void Restart(uint32_t block_size) { core_.Restart(block_size); }
  // As EngineCore's.
  void SetPrefixCaching(bool on) { core_.SetPrefixCaching(on); }
  // No step begins or ends from now on: whoever waits for tokens waits forever.
  void Freeze();

  const EngineCore& core() const { return core_; }
  size_t load() const { return places_.size(); }  // sequences that somebody waits for
  HistogramSnapshot first_token_times() const { return first_token_times_.Snapshot(); }
  std::vector<Iteration> TakeIterations();
  EngineStatistics statistics() const;

 private:
  friend class Ticket;

  struct Place {
    Ticket* ticket;
    uint32_t choice;
    TimePoint submitted;
    bool started;
  };
  struct Alarm : Timer {
    explicit Alarm(EngineDriver& d) : Timer(&OnFire), driver(d) {}
    static void OnFire(Timer& timer) { static_cast<Alarm&>(timer).driver.Pump(); }
    EngineDriver& driver;
  };

  Result<SequenceId> Submit(Ticket& ticket, EngineRequest request);
  void Cancel(SequenceId sequence);
  void Forget(Ticket& ticket);

  void Pump();
  bool BeginStep();
  void FinishStep();
  void HandOut(const EngineOutput& output);
  void Remember();
  void Publish();

  Loop& loop_;
  EngineCore core_;
  const double speedup_;
  Listener listener_;
  Alarm alarm_;
  EngineStep step_;
  bool in_step_ = false;
  bool pumping_ = false;
  bool frozen_ = false;
  TimePoint end_;  // of the step, or of the one before
  std::unordered_map<SequenceId, Place> places_;
  std::vector<Ticket*> due_;  // to be woken; null: gone meanwhile
  std::deque<Iteration> iterations_;
  Histogram first_token_times_;
  mutable std::mutex mutex_;
  EngineStatistics statistics_;  // guarded by mutex_
};

}  // namespace fathom
