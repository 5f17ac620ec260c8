// Do this rank's events come too late to be of use?
//
// Two clocks: from our first byte to the event that tells of the request's blocks, which needs no
// clock but ours; and the engine's own timestamps, which show a growing backlog, and the lag itself
// where the two clocks agree. One late event is an accident: the lag must last.
//
// Threads  One.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "fleet/trust_evidence.h"

namespace fathom {

class LagWatch {
 public:
  // Looks in a row, of those between which something was measured.
  static constexpr uint32_t kLooks = 8;

  void AfterFirstByte(Duration lag) { Take(lag, true); }
  // `offset`: our wall clock less the batch's timestamp. Returns how much of it is lag.
  Duration ByTimestamp(Duration offset, TimePoint now);
  // The next timestamps are another process's.
  void Reset() {
    smallest_.reset();
    smallest_before_.reset();
  }

  // Now and then; what was measured since the last look counts as one.
  std::optional<LateEvents> Look(Duration limit);

 private:
  void Take(Duration lag, bool after_first_byte) {
    if (measured_ && lag <= latest_.lag) return;
    measured_ = true;
    latest_ = {.lag = lag, .after_first_byte = after_first_byte};
  }

  // The smallest offset of the time before and of this one: clocks drift, and are set.
  static constexpr Duration kWindow = std::chrono::minutes(5);
  std::optional<Duration> smallest_;
  std::optional<Duration> smallest_before_;
  TimePoint window_{};
  bool measured_ = false;  // since the last look
  LateEvents latest_;      // the worst since then
  LateEvents worst_;       // what made it late
  uint32_t in_a_row_ = 0;  // looks that say otherwise than `late_`
  bool late_ = false;
};

}  // namespace fathom
