// Which of several routers polls an engine that hands out each event once?
//
// Any of them, and more than one does no harm: what a router has polled it passes on to the others,
// and everybody applies events by their ids (router/events/polled_order.h).
//
// Threads  Any.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/ids.h"

namespace fathom {

// How far a router has heard an engine's events.
struct PolledView {
  uint64_t process = 0;               // of the engine, counted; 0: not known
  std::map<uint32_t, uint64_t> next;  // per rank: all event ids that were heard of are below
  friend bool operator==(const PolledView&, const PolledView&) = default;
};

// What one router passes on to the others.
struct PolledWord {
  PolledView view;    // after the answer
  std::string body;   // the answer as it was polled; empty: it has no events
  bool polls = true;  // the origin polls the worker; false: it tells its view alone
  friend bool operator==(const PolledWord&, const PolledWord&) = default;
};

class PollTurn {
 public:
  virtual ~PollTurn() = default;

  // Whether this router shall poll the worker now. False in the beginning, while it listens for
  // others. Ask again before every poll.
  virtual bool Mine(WorkerId worker) = 0;
  // The view of the others that poll the worker; nullopt: no other one does. Only for workers that
  // Mine() was asked for.
  virtual std::optional<PolledView> Known(WorkerId worker) const = 0;
  // Passes it on.
  virtual void Polled(WorkerId worker, PolledWord word) = 0;
  // Polls of the worker fail: another router takes its turn. Until the next Polled().
  virtual void Rests(WorkerId worker) = 0;
  // The worker is not followed any more. Polled() may still come once, with the last answer.
  virtual void Ends(WorkerId worker) = 0;
  // What was passed on still waits to be told.
  virtual bool telling() const = 0;
  // No other router could pass on anything.
  virtual bool alone() const = 0;
};

}  // namespace fathom
